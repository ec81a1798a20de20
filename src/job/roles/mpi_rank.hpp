#pragma once

#include <functional>

#include "cli/handlers.hpp"
#include "job/roles/job.hpp"
#include "job/roles/processes.hpp"

namespace syncopate::cli {

/// Runs `body` in a process that is a rank of MPI while it does, and gives its status, unless MPI ends the process:
/// where a rank throws, or fails and not all others end with it, all ranks are ended. An error is said first.
/// `sums`: as in `mpi::SessionOptions`. Errors: those of `mpi::start`.
int run_as_mpi_rank(const Launch& launch, bool sums, const std::function<int(mpi::Session&)>& body);

/// The same of a rank of a training job.
int run_as_mpi_rank(const TrainCommand& command, const std::function<int(mpi::Session&)>& body);

/// The process of rank 0, in which all of its members live: a process of MPI has one place among the ranks, and
/// cannot be forked.
Child leading_rank(const Job& job, const TrainCommand& command, Descriptor events);

}  // namespace syncopate::cli
