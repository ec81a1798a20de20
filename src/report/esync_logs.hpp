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

/// The user's values for logs; empty: the values in the logs.
struct EsyncOrigin {
  std::optional<std::string> scheme = {};
  std::optional<std::string> network = {};
  std::optional<std::string> data = {};
  std::optional<std::string> cluster = {};
};

/// Writes the logs of a run to `out`/<host>/worker<rank>. A record has the sums of a round, which
/// the export divides evenly among the round's steps. Waiting for others counts as the global
/// update, as in ESync, whose push and pull block. "evaluation" is the time in which snapshots held
/// the worker. Worker 0 has the accuracies.
/// If the sums of a line are below those of the line before, the process of a resumed run began
/// between the two. Every value is checked before a file is written.
/// Errors: DataError if the folder has no workers' logs or a value of another kind in them, or if
///         `out` already holds logs or cannot be written; ConfigError if config.toml is not TOML.
EsyncLogs export_esync_logs(const RunFolder& run, const std::filesystem::path& out);

/// Makes a run folder of the logs of all workers below `logs`: their lines, evaluations, a summary,
/// and a config.toml with the known options. Workers get their ranks in the order of their paths; a
/// number at the end of a name is compared as a number. Every value is checked before a file is
/// written. Fields that the logs do not have are absent, or null if readers expect one. Without a
/// known scheme, logs with "global update" are of `esync`; others are of `ssgd` if all workers have
/// the same number of rounds.
/// Errors: DataError if there are no logs, if one is damaged, or if the folder already holds a run.
EsyncLogs import_esync_logs(const std::filesystem::path& logs, const RunFolder& run,
                            const EsyncOrigin& origin = {});

}  // namespace syncopate
