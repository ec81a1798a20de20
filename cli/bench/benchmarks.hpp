#pragma once

#include "cli/bench/bench_command.hpp"

namespace syncopate::cli {

/// Sums vectors over ranks, each a process of this host: how long a round takes its slowest rank,
/// from a barrier on. The first sum of each size is checked against what it must be.
///
/// Results: transport, algorithm, ranks, bytes, median, min and p90 seconds, CPU seconds of all
///          ranks together a round, rounds.
/// Thread:  to be called while this process has one thread.
int bench_allreduce(const BenchCommand& command);

/// Workers push gradients to parameter servers and pull parameters, each at its own pace, processes
/// of this host all: what an exchange takes a worker.
///
/// Results: transport, algorithm (`push-pull`), servers, workers, bytes (each way), median, min and
///          p90 seconds over all rounds of all workers, CPU seconds of workers and servers together
///          a round of a worker, rounds of each worker.
/// Thread:  to be called while this process has one thread.
int bench_push_pull(const BenchCommand& command);

/// Messages between two processes of this host. Those of up to 64 KiB go back and forth: half a
/// round trip. Larger ones go one way and both ways at once: from a barrier to the end of the later
/// side, and the bandwidth is that of one direction.
///
/// Results: transport, pattern, bytes, median, min and p90 seconds, CPU seconds of both sides
///          together, bytes per second, rounds.
/// Thread:  to be called while this process has one thread.
int bench_latency(const BenchCommand& command);

/// The loops over vectors that collectives and servers spend their time in, on one core: the reduce
/// kernels with what lies in the second-level cache and with what comes from memory, and a step of
/// each update rule, from memory. They take turns, so that what slows the machine down hits all of
/// them.
///
/// Results: kernel, target (the instruction set that it took), from (`L2`, `memory`), bytes,
///          median, min and p90 seconds, bytes per second, rounds. Bytes are those of the vector
///          that is written, whatever else is read or written beside it.
/// Thread:  to be called while this process has one thread.
int bench_kernels(const BenchCommand& command);

/// What `--compress` does to values, on one core: encoding and decoding by each codec, with values
/// that lie in the second-level cache and with such as come from memory. They take turns, so that
/// what slows the machine down hits all of them.
///
/// Results: codec, does (`encode`, `decode`), from (`L2`, `memory`), ratio (of bytes before and
///          after), bytes, median, min and p90 seconds, bytes per second, rounds. Bytes are those
///          of the float32 values.
/// Thread:  to be called while this process has one thread.
int bench_codecs(const BenchCommand& command);

}  // namespace syncopate::cli
