#pragma once

#include "job/launch/supervisor.hpp"
#include "job/roles/job.hpp"

namespace syncopate::cli {

/// The one process of a job in virtual time: all nodes, in the simulator, under the network of the
/// cluster file's `[link]`. It tells events and heeds a wish for an end as a coordinator's process
/// does. Refers to the job, and takes the events for its own.
Child simulation_process(const Job& job, Descriptor events);

}  // namespace syncopate::cli
