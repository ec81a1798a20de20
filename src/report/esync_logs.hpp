#pragma once

#include <cstddef>
#include <filesystem>

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

struct EsyncLogs {
  std::size_t workers = 0;
  std::size_t rounds = 0;  ///< files
};

/// Writes the logs of a run to `out`/<host>/worker<rank>. A record has the sums of a round, which
/// are shared out evenly among its steps. Waiting for others counts as the global update, as in
/// ESync, whose push and pull block. Worker 0 has the accuracies.
/// Errors: DataError, for a folder without workers' logs, or one that cannot be written.
EsyncLogs export_esync_logs(const RunFolder& run, const std::filesystem::path& out);

/// Makes a run folder of the logs of all workers below `logs`, ranked by their paths: their lines,
/// evaluations and a summary. Fields that the logs do not have are absent.
/// Errors: DataError, where there are no logs, for a damaged one, or for a folder that holds a run.
EsyncLogs import_esync_logs(const std::filesystem::path& logs, const RunFolder& run);

}  // namespace syncopate
