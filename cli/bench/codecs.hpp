#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// What `--compress` does to values, on one core: encoding and decoding by each codec, with values that lie in the
/// second-level cache and with such as come from memory. They take turns, so that what slows the machine down hits
/// all of them.
///
/// Results: codec, does (`encode`, `decode`), from (`L2`, `memory`), ratio (of bytes before and after), bytes,
///          median, min and p90 seconds, bytes per second, rounds. Bytes are those of the float32 values.
/// Thread:  to be called while this process has one thread.
int bench_codecs(const BenchCommand& command);

}  // namespace syncopate::cli
