#pragma once

#include "job/launch/job_request.hpp"
#include "job/launch/supervisor.hpp"

namespace syncopate {

/// `syncopate run`: starts the coordinator and the programs as processes on this machine, and shows
/// the job until all have ended. Returns its exit status. The programs learn from environment
/// variables how they join (`ProgramLaunch`).
/// Errors: as `run_watched`.
int run_programs(const ProgramsRequest& request, const OpenView& open_view);

}  // namespace syncopate
