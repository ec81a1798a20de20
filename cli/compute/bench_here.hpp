#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// Runs a benchmark and prints what it found. Gives the exit status.
int bench_here(const BenchCommand& command);

}  // namespace syncopate::cli
