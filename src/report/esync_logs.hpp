#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "report/run_folder.hpp"

namespace syncopate {

/// The logs of ESync's own tools (github.com/Lizonghang/ESync, `utils.py` and `summary.py`): a
/// folder for each worker, in it `iter-N.txt` for each synchronization round N from 1, one JSON
/// object:
///
///     {"num_iters": N, "time": {"0": {…}, "1": {…}, …}, "num_samples": …, "total_time": …,
///      "accuracy": …}
///
/// `time` has the seconds of each local iteration of the round: "get_batch", "forward and
/// backward", "local update"; the last one has "global update" (ESync) or "global aggregate"
/// (synchronous), and may have "check ready" and "evaluation". `num_samples`: of the worker in this
/// round. `total_time`: seconds since the beginning. `accuracy`: of the worker that tests the
/// model.
///
/// An export adds two fields that ESync does not have: `run` in `iter-1.txt`, options of the run
/// (`scheme`, `network`, …), and `evaluations` beside `accuracy`, the whole lines of
/// `evaluations.jsonl`.

struct EsyncLogs {
  std::size_t workers = 0;
  std::size_t rounds = 0;  ///< files
};

/// What the user knows of logs; empty: as the logs say.
struct EsyncOrigin {
  std::optional<std::string> scheme = {};
  std::optional<std::string> network = {};
  std::optional<std::string> data = {};
  std::optional<std::string> cluster = {};
};

/// Writes the logs of a run to `out`/<host>/worker<rank>. A record has the sums of a round, which
/// are shared out evenly among its steps. Waiting for others counts as the global update, as in
/// ESync, whose push and pull block. "evaluation" is the time in which snapshots held the worker.
/// Worker 0 has the accuracies.
/// Sums of a line below those before it are those of a resumed run's new process. Every value is
/// checked before a file is written.
/// Errors: DataError, for a folder without workers' logs, a value of another kind in them, an `out`
///         that holds logs already, or one that cannot be written; ConfigError, for a config.toml
///         that is no TOML.
EsyncLogs export_esync_logs(const RunFolder& run, const std::filesystem::path& out);

/// Makes a run folder of the logs of all workers below `logs`: their lines, evaluations, a summary,
/// and a config.toml with the options that are known. Workers are ranked by their paths, where a
/// number at the end of a name counts as a number. Every value is checked before a file is written.
/// Fields that the logs do not have are absent, or null where readers expect one. Without a known
/// scheme, logs with "global update" are of `esync`; others are of `ssgd` where all workers have
/// equally many rounds.
/// Errors: DataError, where there are no logs, for a damaged one, or for a folder that holds a run.
EsyncLogs import_esync_logs(const std::filesystem::path& logs, const RunFolder& run,
                            const EsyncOrigin& origin = {});

}  // namespace syncopate
