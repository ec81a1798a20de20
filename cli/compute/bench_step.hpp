#pragma once

#include "cli/bench/command.hpp"

namespace syncopate::cli {

/// Steps of training on noise, to be timed.
struct StepSetting {
  std::string network;
  std::string device;  ///< as `resolve_device` understands
  std::uint32_t samples = 64;
  Effort effort = {};
};

/// Samples a second that one thread of this process trains with. Errors: ConfigError; those of libtorch.
double training_speed(const StepSetting& setting);

/// A replica that trains alone on one batch over and over, so that nothing but computing is timed: its
/// forward and backward pass, its update, and the step that both make.
///
/// Results: network, part (`backward`, `update`, `step`), threads, samples (a batch), median, min and p90
///          seconds, samples per second over all rounds,
///          peak resident bytes (of the process), rounds.
/// Thread:  to be called while this process has one thread. Errors: ConfigError.
int bench_step(const BenchCommand& command);

}  // namespace syncopate::cli
