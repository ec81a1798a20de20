#pragma once

#include "job/launch/job_request.hpp"

namespace syncopate {

/// The folder of a run that is about to start: made, with its `config.toml` in it, and removed
/// again with the claim unless the run took it over by `keep`. A resumed run keeps its folder
/// either way.
class RunClaim {
 public:
  /// A folder whose name is not the user's own choice gets another where two runs begin in the same
  /// second. Errors: ConfigError, for a folder that holds a run; DataError, for one that cannot be
  /// written.
  explicit RunClaim(JobRequest request);
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

  /// As given, but for the name of the run folder.
  const JobRequest& request() const { return request_; }

  void keep() { kept_ = true; }

 private:
  void give_up();

  JobRequest request_;
  bool made_ = false;  ///< the folder was not there before
  bool kept_ = false;
};

}  // namespace syncopate
