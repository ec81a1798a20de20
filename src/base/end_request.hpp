#pragma once

#include <string>

namespace syncopate {

// The user's request for the end of the job that this process coordinates: SIGTERM, from its
// supervisor (`request_end_of`) or from outside.

/// From now on, SIGTERM requests the end of the job instead of ending this process.
void take_end_requests();
/// True once the user has requested the end of the job.
bool end_requested();
/// The first requester: "Ctrl-C", "SIGTERM from process 4711". Empty without a request.
std::string end_requester();

/// Requests the end of the job that `process` coordinates. `signal`: the user's; 0: no process
/// reads the output any more.
void request_end_of(int process, int signal);

}  // namespace syncopate
