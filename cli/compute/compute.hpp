#pragma once

#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"
#include "cli/bench/device_profiles.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/doctor/finding.hpp"

namespace syncopate::cli {

/// Steps of training on noise, to be timed.
struct StepSetting {
  std::string network;
  std::string device;  ///< as `resolve_device` understands
  std::uint32_t samples = 64;
  Effort effort = {};
  std::uint32_t threads = 1;
  std::optional<std::uint32_t> image_size = {};  ///< empty: 28, or the network's minimum
  Precision precision = Precision::float32;
};

/// The times of steps of this process, after some to warm up. Errors: ConfigError; those of
/// libtorch.
std::vector<double> step_seconds(const StepSetting& setting);
/// Samples per second at which this process trains. Errors: as above.
double training_speed(const StepSetting& setting);

/// Measures each device of this machine, and writes or prints them as a cluster file. Returns the
/// exit status. Errors: as above; those of `write_profiles`.
int profile_here(const ProfileCommand& command);

/// Trains one replica on one batch again and again, so only computation is timed: the forward and
/// backward pass, the update, and the whole step.
///
/// Results: network, part (`backward`, `update`, `step`), threads, samples (a batch), image_size
///          (pixels a side), precision, median, min and p90 seconds, samples per second over all
///          rounds, peak resident bytes (of the process), rounds.
/// Thread:  to be called while this process has one thread. Errors: ConfigError.
int bench_step(const BenchCommand& command);

/// Runs a benchmark and prints the results. Returns the exit status.
int bench_here(const BenchCommand& command);

/// `syncopate doctor`: checks this host, or the host of every rank that a launcher started and the
/// links between them, and prints the findings. With a coordinator's address it also contacts the
/// coordinator. Returns the exit status: failure if it found a problem. Errors: none; a failed
/// check is a finding.
int doctor_here(const DoctorCommand& command);

/// libtorch, BLAS, drivers, and how fast each device trains: LeNet-5, mini-batches of 64, one
/// thread.
Findings examine_devices();

}  // namespace syncopate::cli
