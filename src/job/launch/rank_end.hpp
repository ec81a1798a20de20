#pragma once

#include <functional>

#include "base/time.hpp"
#include "job/launch/launcher.hpp"

namespace syncopate::cli {

/// How long a rank that refuses its input leaves the word to rank 0.
inline constexpr Duration patience_with_rank_zero = std::chrono::seconds(5);

/// Runs `body` in a process that `launch` made a rank, and gives its exit status. As `guarded`, but of what all ranks
/// find alike the user hears once, and no rank is left waiting for one that is gone.
///
/// Rank 0 says its errors at once, any other with its number in front. Where another one refuses its input, it waits
/// first: rank 0, if it finds the same, says so meanwhile, and all are ended. One that is still there then has found what
/// is wrong on its machine alone, or its launcher ends no others, as srun does unless told.
///
/// All are ended by the launcher, once one ends badly: Open MPI's has this habit; MPICH's is told (`end_all_ranks`).
int guarded_rank(const Launch& launch, const std::function<int()>& body,
                 Duration patience = patience_with_rank_zero);

/// Asks the launcher to end all ranks with `status`, where it would wait for the others: MPICH's does, which may wait for
/// this one within MPI_Init for ever. Of PMI-1, which that launcher speaks, it takes one line, and no MPI.
/// A moment passes first, since what this process has said goes another way to the launcher.
void end_all_ranks(const Environment& environment, int status);

}  // namespace syncopate::cli
