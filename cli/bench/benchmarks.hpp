#pragma once

#include "cli/bench/bench_command.hpp"

namespace syncopate::cli {

/// Reduces vectors over ranks, which are processes of this host: the time of a round on its slowest
/// rank, from a barrier on. It checks the first result of each size.
///
/// Results: transport, algorithm, ranks, bytes, median, min and p90 seconds, CPU seconds of all
///          ranks together a round, rounds.
/// Thread:  to be called while this process has one thread.
int bench_allreduce(const BenchCommand& command);

/// Workers push gradients to parameter servers and pull parameters, each at its own speed; all are
/// processes of this host. It measures the exchange of a worker.
///
/// Results: transport, algorithm (`push-pull`), servers, workers, bytes (each way), median, min and
///          p90 seconds over all rounds of all workers, CPU seconds of workers and servers together
///          a round of a worker, rounds of each worker.
/// Thread:  to be called while this process has one thread.
int bench_push_pull(const BenchCommand& command);

/// Messages between two processes of this host. Messages of up to 64 KiB go back and forth: the
/// time is half a round trip. Larger messages go one way, then both ways at once: the time lasts
/// from a barrier to the end of the later side, and the bandwidth is that of one direction.
///
/// Results: transport, pattern, bytes, median, min and p90 seconds, CPU seconds of both sides
///          together, bytes per second, rounds.
/// Thread:  to be called while this process has one thread.
int bench_latency(const BenchCommand& command);

/// The vector loops of collectives and servers, on one core: the reduce kernels with vectors in the
/// second-level cache and in memory, and a step of each update rule with parameters in memory. The
/// loops run in turn, so that a slowdown of the machine affects all of them.
///
/// Results: kernel, target (the instruction set that it took), from (`L2`, `memory`), bytes,
///          median, min and p90 seconds, bytes per second, rounds. Bytes are those of the vector
///          that is written, whatever else is read or written beside it.
/// Thread:  to be called while this process has one thread.
int bench_kernels(const BenchCommand& command);

/// The codecs of `--compress`, on one core: encoding and decoding by each codec, with values in the
/// second-level cache and in memory. The codecs run in turn, so that a slowdown of the machine
/// affects all of them.
///
/// Results: codec, does (`encode`, `decode`), from (`L2`, `memory`), ratio (of bytes before and
///          after), bytes, median, min and p90 seconds, bytes per second, rounds. Bytes are those
///          of the float32 values.
/// Thread:  to be called while this process has one thread.
int bench_codecs(const BenchCommand& command);

}  // namespace syncopate::cli
