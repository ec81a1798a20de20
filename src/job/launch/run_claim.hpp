#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "job/launch/descriptor.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// Holds a run folder for one job: a lock (flock) on its file `run.lock`, which names the process
/// and the host. Processes that are forked afterwards share the lock. So the folder is free again
/// once the last process of the job has ended, however it ended.
class RunLock {
 public:
  /// Waits for the end of processes whose job's first process was killed: they end soon, too.
  /// Errors: ConfigError, which names the folder and the process that holds it; DataError if the
  ///         folder cannot be written.
  explicit RunLock(const std::filesystem::path& folder);
  /// Removes the file, in the process that has made the lock.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  bool take();

  std::filesystem::path file_;
  Descriptor descriptor_;
  pid_t owner_;
};

/// The run folder of a node that joins `job` without a run folder of its own: a new one below this
/// process's `runs`, independent of the coordinator's. A rank of a launcher takes the folder of the
/// job if that is directly in `runs`, because rank 0 runs the same command. Errors: DataError.
std::filesystem::path own_run_dir(const TrainConfig& job, const JoinRequest& request, Rank index);

/// The folder of a run that is about to start. The constructor makes it with its `config.toml`,
/// locks it for this job, and removes temporary files of a job that was killed; the destructor
/// removes it unless `keep` was called. The folder of a resumed run is never removed; without
/// `keep`, the destructor restores its files.
class RunClaim {
 public:
  /// A default name gets a number if two runs begin in the same second. Errors: ConfigError if the
  /// folder holds a run or another job writes it; DataError if it cannot be written.
  explicit RunClaim(JobRequest request);
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

  /// The request, with the final name of the run folder.
  const JobRequest& request() const { return request_; }

  /// For a resumed run, after all checks: writes its configuration, and drops the summary of the
  /// previous session and the evaluations after the checkpoint, which is that of `round`. Errors:
  /// DataError.
  void go_on_from(const std::filesystem::path& checkpoint, std::uint64_t round);

  /// The same for a resumed run without a checkpoint: drops all evaluations. Errors: DataError.
  void begin_again();

  /// The checkpoint of `go_on_from`.
  const std::optional<std::filesystem::path>& checkpoint() const { return checkpoint_; }

  void keep() { kept_ = true; }

 private:
  void replace_config();
  void give_up();
  void restore() const;

  JobRequest request_;
  std::optional<std::filesystem::path> checkpoint_;
  std::map<std::filesystem::path, std::string> earlier_;  ///< files of the previous session
  std::optional<RunLock> lock_;                           ///< while this lives
  bool made_ = false;                                     ///< the folder was not there before
  bool kept_ = false;
};

}  // namespace syncopate
