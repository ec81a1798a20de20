#pragma once

#include <cstdint>
#include <functional>

#include "job/launch/job_request.hpp"
#include "job/launch/launcher.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// The role of a rank in a job whose ranks a launcher has started.
struct RankRole {
  Role role = Role::worker;
  std::uint32_t index = 0;

  friend bool operator==(const RankRole&, const RankRole&) = default;
};

/// Returns the role of a rank: the first ranks are the servers of the job, the others its workers.
RankRole role_of_rank(std::uint32_t rank, std::uint32_t servers);

/// Runs `body` in an MPI rank and returns its status. If the body throws, or the other ranks do not
/// end soon after it, the rank prints the error and MPI ends all ranks. `sums`: the rank takes part
/// in MPI's allreduce. Errors: those of `mpi::start`.
int run_as_mpi_rank(const Launch& launch, bool sums, const std::function<int(mpi::Session&)>& body);

/// Does the same for a rank of a training job.
int run_as_mpi_rank(const JobRequest& request, const std::function<int(mpi::Session&)>& body);

}  // namespace syncopate
