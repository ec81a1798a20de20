#pragma once

#include <exception>
#include <functional>

#include "base/time.hpp"
#include "job/launch/launcher.hpp"

namespace syncopate {

/// The exit statuses of a command, and of each process of a job. `docs/reference/errors.md`
/// explains them.
namespace exit_status {
inline constexpr int success = 0;
inline constexpr int failure = 1;        ///< the job failed
inline constexpr int refused = 2;        ///< invalid input; the command did nothing
inline constexpr int interrupted = 130;  ///< the user ended it
/// The reader of the output has gone; a shell reports this status if SIGPIPE ends a process.
inline constexpr int output_closed = 141;
}  // namespace exit_status

/// The exit status for an error: `refused` for ConfigError, DataError and errors of the file
/// system, `interrupted` for Cancelled, else `failure`.
int status_of(const std::exception& error);

/// Runs `body` and returns its exit status. An exception becomes one line on standard error,
/// `syncopate: …`, and the status of its type.
int guarded(const std::function<int()>& body);

/// Writes `syncopate: …` and a line end to standard error. The message becomes `printable`.
void print_error(const char* message);

/// A rank that refuses its input waits this long for rank 0 to report the error.
inline constexpr Duration patience_with_rank_zero = std::chrono::seconds(5);

/// Runs `body` in a rank of `launch` and returns its exit status. As `guarded`, but an error that
/// all ranks have is printed once, and no rank keeps waiting for a rank that has ended.
///
/// Rank 0 prints its error at once. Any other rank that refuses its input first waits for
/// `patience`: if rank 0 has the same error, rank 0 prints it, and the launcher ends all ranks.
/// After the wait, the rank prints the error with its number in front: either only this rank has
/// it, or the launcher does not end the other ranks, which is the default of srun.
///
/// When one rank fails, the launcher of Open MPI ends all ranks by itself; the launcher of MPICH
/// does so on request (`end_all_ranks`).
int guarded_rank(const Launch& launch, const std::function<int()>& body,
                 Duration patience = patience_with_rank_zero);

/// Requests the launcher of MPICH to end all ranks with `status`; otherwise the other ranks may
/// wait for this one in MPI_Init forever. No effect under other launchers. The request is one line
/// of PMI-1 and needs no MPI. The function waits a moment first, because the output of this process
/// reaches the launcher on another path.
void end_all_ranks(const Environment& environment, int status);

}  // namespace syncopate
