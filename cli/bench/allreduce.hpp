#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// Sums vectors over ranks, each a process of this host: how long a round takes its slowest rank, from a
/// barrier on. The first sum of each size is checked against what it must be.
///
/// Results: transport, algorithm, ranks, bytes, median, min and p90 seconds, CPU seconds of all ranks
///          together a round, rounds.
/// Thread:  to be called while this process has one thread.
int bench_allreduce(const BenchCommand& command);

}  // namespace syncopate::cli
