#pragma once

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// The part that a rank plays in a job whose ranks a launcher has started.
struct Part {
  Role role = Role::worker;
  std::uint32_t index = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// The first ranks are the servers of a job that has some, the others its workers.
Part part_of(std::uint32_t rank, std::uint32_t servers);

/// `syncopate train` where a launcher, such as mpirun or srun, has started it once for each member. Rank 0
/// coordinates and tests as well, has the run folder, and tells the user what happens; the others ask it what the job
/// is. Returns the exit status of this rank.
///
/// Errors: ConfigError, DataError, before the job begins; TimedOut, where rank 0 does not come up.
int train_launched(const TrainCommand& command);

}  // namespace syncopate::cli
