#pragma once

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// `syncopate worker` and `syncopate server`: waits for the coordinator, asks what the job is and for a
/// place, takes part, and returns the exit status.
/// Errors: ConfigError, DataError: this node does not fit the job, which both sides are told; what
///         ended the job.
int join_job(const JoinCommand& command);

}  // namespace syncopate::cli
