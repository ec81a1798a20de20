#pragma once

#include <optional>

#include "job/launch/job_request.hpp"
#include "job/launch/run_lock.hpp"

namespace syncopate {

/// The folder of a run that is about to start. The constructor makes it with its `config.toml`,
/// locks it for this job, and removes temporary files of a job that was killed; the destructor
/// removes it unless `keep` was called. A resumed run always keeps its folder.
class RunClaim {
 public:
  /// A default name gets a number where two runs begin in the same second. Errors: ConfigError, for
  /// a folder that holds a run, or that another job writes; DataError, for one that cannot be
  /// written.
  explicit RunClaim(JobRequest request);
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

  /// The request, with the final name of the run folder.
  const JobRequest& request() const { return request_; }

  void keep() { kept_ = true; }

 private:
  void give_up();

  JobRequest request_;
  std::optional<RunLock> lock_;  ///< while this lives
  bool made_ = false;            ///< the folder was not there before
  bool kept_ = false;
};

}  // namespace syncopate
