#pragma once

#include <functional>
#include <string>

#include "job/launch/event_pipe.hpp"
#include "job/launch/job_request.hpp"
#include "job/launch/program_ends.hpp"

namespace syncopate {

/// The body of a process that stands for the coordinator at a launcher on another host. It passes
/// the coordinator's events to `events`, and reports to it which programs have ended, and that the
/// user has requested the end. Calls `welcome` once the programs may start: one that starts earlier
/// could take the place of another host's. Returns the exit status once the job is over.
int follow_coordinator(const ProgramsRequest& request, const std::string& key, ProgramEnds& ends,
                       EventPipe& events, const std::function<void()>& welcome);

}  // namespace syncopate
