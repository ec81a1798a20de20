#pragma once

#include "cli/bench/bench_command.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/doctor/finding.hpp"

namespace syncopate::cli {

/// Steps of training on noise, to be timed.
struct StepSetting {
  std::string network;
  std::string device;  ///< as `resolve_device` understands
  std::uint32_t samples = 64;
  Effort effort = {};
};

/// Samples a second that one thread of this process trains with. Errors: ConfigError; those of
/// libtorch.
double training_speed(const StepSetting& setting);

/// A replica that trains alone on one batch over and over, so that nothing but computing is timed:
/// its forward and backward pass, its update, and the step that both make.
///
/// Results: network, part (`backward`, `update`, `step`), threads, samples (a batch), median, min
///          and p90 seconds, samples per second over all rounds,
///          peak resident bytes (of the process), rounds.
/// Thread:  to be called while this process has one thread. Errors: ConfigError.
int bench_step(const BenchCommand& command);

/// Runs a benchmark and prints what it found. Gives the exit status.
int bench_here(const BenchCommand& command);

/// `syncopate doctor`: examines this host, or, where a launcher has started it several times, every
/// rank's host and the links between them, and prints what it found; with a coordinator's address,
/// also whether that answers. Gives the exit status: failure, where there is a problem. Errors:
/// none of what it examines.
int doctor_here(const DoctorCommand& command);

/// libtorch, BLAS, drivers, and how fast each device trains: LeNet-5, mini-batches of 64, one
/// thread.
Findings examine_devices();

}  // namespace syncopate::cli
