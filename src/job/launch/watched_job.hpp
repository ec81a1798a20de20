#pragma once

#include <vector>

#include "cli/handlers.hpp"
#include "job/launch/supervisor.hpp"

namespace syncopate::cli {

/// Starts the processes of a training job, shows what they do until they have ended, prints the final
/// table, or why there is none, and gives the exit status of the job.
///
/// Processes log to where the view shows it, under their names. One that fails has told the
/// coordinator, which tells the user by a `failed` event; otherwise the user is told how it ended.
/// SIGTERM asks the coordinator for an end after the round under way.
///
/// Errors: InternalError, when this process has more than one thread; Error, when a process cannot be
///         started.
int run_watched(const TrainCommand& command, Supervisor::Options job);

}  // namespace syncopate::cli
