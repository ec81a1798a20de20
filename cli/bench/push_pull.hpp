#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// Workers push gradients to parameter servers and pull parameters, each at its own pace, processes of
/// this host all: what an exchange takes a worker.
///
/// Results: transport, algorithm (`push-pull`), servers, workers, bytes (each way), median, min and p90
///          seconds over all rounds of all workers, CPU seconds of workers and servers together a round
///          of a worker, rounds of each worker.
/// Thread:  to be called while this process has one thread.
int bench_push_pull(const BenchCommand& command);

}  // namespace syncopate::cli
