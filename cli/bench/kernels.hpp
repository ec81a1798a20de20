#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// The loops over vectors that collectives and servers spend their time in, on one core: the reduce
/// kernels with what lies in the second-level cache and with what comes from memory, and a step of each
/// update rule, from memory. They take turns, so that what slows the machine down hits all of them.
///
/// Results: kernel, target (the instruction set that it took), from (`L2`, `memory`), bytes, median, min
///          and p90 seconds, bytes per second, rounds. Bytes are those of the vector that is written,
///          whatever else is read or written beside it.
/// Thread:  to be called while this process has one thread.
int bench_kernels(const BenchCommand& command);

}  // namespace syncopate::cli
