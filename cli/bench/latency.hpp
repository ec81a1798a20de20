#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// Messages between two processes of this host. Those of up to 64 KiB go back and forth: half a round
/// trip. Larger ones go one way and both ways at once: from a barrier to the end of the later side, and
/// the bandwidth is that of one direction.
///
/// Results: transport, pattern, bytes, median, min and p90 seconds, CPU seconds of both sides together,
///          bytes per second, rounds.
/// Thread:  to be called while this process has one thread.
int bench_latency(const BenchCommand& command);

}  // namespace syncopate::cli
