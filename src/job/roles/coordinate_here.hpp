#pragma once

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// `syncopate coordinator`: makes the run folder, starts coordinator and evaluator as processes on this
/// machine, waits for workers and servers that are started by hand, shows the job, and returns its
/// exit status. Errors: ConfigError, DataError, before anything is started.
int coordinate_here(const CoordinatorCommand& command);

}  // namespace syncopate::cli
