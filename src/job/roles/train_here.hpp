#pragma once

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// `syncopate train`: makes the run folder, starts coordinator, workers, servers and evaluator as
/// processes on this machine, or all of them in one process in virtual time, shows what they do, and returns the exit status of the job.
/// Errors: ConfigError, DataError, before anything is started.
int train_here(const TrainCommand& command);

}  // namespace syncopate::cli
