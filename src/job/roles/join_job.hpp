#pragma once

#include <memory>

#include "cli/handlers.hpp"
#include "transport/transport.hpp"

namespace syncopate::cli {

/// `syncopate worker` and `syncopate server`: waits for the coordinator, asks what the job is and for a
/// place, takes part, and returns the exit status.
/// Errors: ConfigError, DataError: this node does not fit the job, which both sides are told; what
///         ended the job.
int join_job(const JoinCommand& command);

/// The same over a transport that has reached the coordinator.
int join_job_over(std::unique_ptr<Transport> transport, const JoinCommand& command);

}  // namespace syncopate::cli
