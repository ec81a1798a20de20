#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job/launch/descriptor.hpp"
#include "job/launch/run_claim.hpp"
#include "job/launch/supervisor.hpp"
#include "job/roles/coordinate.hpp"
#include "job/roles/hub.hpp"
#include "job/roles/job.hpp"
#include "job/roles/members.hpp"

namespace syncopate::cli {

/// Whether servers are threads of the coordinator's process.
bool shares_process(const TrainConfig& config);

// The processes of a job on this machine. Each refers to the job, which outlives them.

/// Takes the listener and the events for its own.
Child coordinator_process(const Job& job, Listener listener, Descriptor events,
                          CoordinateOptions options);
Child worker_process(const Job& job, const Hub& hub, Rank rank);
Child server_process(const Job& job, const Hub& hub, Rank shard);
/// All of the job.
std::vector<Child> worker_processes(const Job& job, const Hub& hub);
/// Those that share the coordinator's process; empty where none does.
std::function<std::vector<std::unique_ptr<Candidate>>()> servers_within(const Job& job);
/// None where servers share the coordinator's process.
std::vector<Child> server_processes(const Job& job, const Hub& hub);
Child evaluator_process(const Job& job, const Hub& hub);

/// Runs and shows the processes of a job to their end; gives its exit status. A job that was refused
/// before its first round leaves nothing in its folder. Errors: as `run_watched`.
int run_claimed(RunClaim& claim, Supervisor::Options job);

}  // namespace syncopate::cli
