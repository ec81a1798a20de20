#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "job/launch/supervisor.hpp"
#include "job/spec/config.hpp"

namespace syncopate {

/// Shows a job while it runs, and how it ended.
class JobView : public Watcher {
 public:
  /// Every process has ended. `exit_status` is that of the job; `failure` names the first process
  /// that failed, and how; it is empty where none did.
  virtual void ended(int exit_status, const std::string& failure) = 0;
};

/// Opens the view of a job of this configuration. The library itself writes to no terminal.
using OpenView = std::function<std::unique_ptr<JobView>(const TrainConfig& config)>;

/// Starts the processes of a training job, shows them in `view` until they have ended, and returns
/// the exit status of the job.
///
/// Processes log to the view, under their names. A process that fails reports the error to the
/// coordinator, which reports it to the view by a `failed` event. SIGTERM asks the coordinator to
/// end the job after the current round.
///
/// Errors: InternalError, when this process has more than one thread; Error, when a process cannot
///         be started.
int run_watched(Supervisor::Options job, log::Verbosity verbosity, JobView& view);

}  // namespace syncopate
