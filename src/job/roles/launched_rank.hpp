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

/// The first ranks are the servers of the job, the others its workers.
RankRole role_of_rank(std::uint32_t rank, std::uint32_t servers);

/// Runs `body` in a rank of MPI and returns its status. Where a rank throws, or fails while others
/// continue, MPI ends all ranks, after the rank has printed its error. `sums`: as in
/// `mpi::SessionOptions`. Errors: those of `mpi::start`.
int run_as_mpi_rank(const Launch& launch, bool sums, const std::function<int(mpi::Session&)>& body);

/// `run_rank` for a rank of a training job.
int run_as_mpi_rank(const JobRequest& request, const std::function<int(mpi::Session&)>& body);

}  // namespace syncopate
