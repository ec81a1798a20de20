#pragma once

#include <exception>
#include <functional>

#include "base/time.hpp"
#include "job/launch/launcher.hpp"

namespace syncopate {

/// The exit statuses of a command, and of each process of a job. `docs/errors.md` explains them.
namespace exit_status {
inline constexpr int success = 0;
inline constexpr int failure = 1;        ///< the job failed
inline constexpr int refused = 2;        ///< the input was bad: nothing was done
inline constexpr int interrupted = 130;  ///< the user ended it
}  // namespace exit_status

/// The status that an error ends a command with: `refused` for ConfigError and DataError,
/// `interrupted` for Cancelled, else `failure`.
int status_of(const std::exception& error);

/// Runs `body` and gives its exit status. An error that it throws becomes one line on standard
/// error, `syncopate: …`, and the status of its kind.
int guarded(const std::function<int()>& body);

/// Writes `syncopate: …` and a line end to standard error; line ends within become spaces.
void print_error(const char* message);

/// How long a rank that refuses its input leaves the word to rank 0.
inline constexpr Duration patience_with_rank_zero = std::chrono::seconds(5);

/// Runs `body` in a process that `launch` made a rank, and gives its exit status. As `guarded`, but
/// of what all ranks find alike the user hears once, and no rank is left waiting for one that is
/// gone.
///
/// Rank 0 says its errors at once, any other with its number in front. Where another one refuses
/// its input, it waits
/// first: rank 0, if it finds the same, says so meanwhile, and all are ended. One that is still
/// there then has found what is wrong on its machine alone, or its launcher ends no others, as srun
/// does unless told.
///
/// All are ended by the launcher, once one ends badly: Open MPI's has this habit; MPICH's is told
/// (`end_all_ranks`).
int guarded_rank(const Launch& launch, const std::function<int()>& body,
                 Duration patience = patience_with_rank_zero);

/// Asks the launcher to end all ranks with `status`, where it would wait for the others: MPICH's
/// does, which may wait for this one within MPI_Init for ever. Of PMI-1, which that launcher
/// speaks, it takes one line, and no MPI. A moment passes first, since what this process has said
/// goes another way to the launcher.
void end_all_ranks(const Environment& environment, int status);

}  // namespace syncopate
