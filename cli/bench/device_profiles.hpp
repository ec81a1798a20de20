#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"

namespace syncopate::cli {

/// The parsed command line of `syncopate profile`.
struct ProfileCommand {
  std::string network = "lenet5";
  std::uint32_t batch_size = 64;
  std::uint32_t threads = 1;                     ///< of a device that is a CPU
  std::optional<std::uint32_t> image_size = {};  ///< side; empty: 28, or the network's minimum
  Effort effort{.rounds = {}, .seconds = 3};
  std::filesystem::path out = {};  ///< a cluster file; empty: standard output
  bool add = false;                ///< adds to the devices that the file already has
};

/// A device as it was measured.
struct ProfiledDevice {
  std::string name;
  std::uint32_t count = 1;  ///< number of such devices on this machine
  double samples_per_second = 0;
  double jitter = 0;            ///< standard deviation of a step's time over its mean
  double seconds_per_step = 0;  ///< of a step, whatever its samples
};

/// The part of a step's time that does not grow with its samples, by the mean times of steps of a
/// whole batch and of a quarter of it; at most nine tenths of the former.
double seconds_per_step(double whole, double quarter);

/// Returns standard deviation / mean, at most 0.99. Ignores the slowest percent of the times,
/// during which another program may have used the device.
double jitter_of(std::vector<double> seconds);

/// The devices in the form of a cluster file, each with a comment on how it was measured.
std::string device_tables(const ProfileCommand& command,
                          const std::vector<ProfiledDevice>& devices);

/// Returns a device's name in a cluster file: the names of host and device, in which '-' replaces
/// every character that is not alphanumeric or '.'.
std::string profile_name(std::string host, const std::string& device);

/// Checks the output file before anything is measured. Errors: ConfigError if the file exists and
/// the command does not say to add to it, if it is not a cluster file, or if it already has a
/// device with one of these names; DataError if it cannot be read.
void expect_target(const ProfileCommand& command, const std::vector<std::string>& names);

/// Writes a cluster file with these devices, or adds them to an existing one, following a symbolic
/// link. Errors: those of `expect_target`; ConfigError if the result is not a valid cluster file:
/// the file then stays as it was.
void write_profiles(const ProfileCommand& command, const std::vector<ProfiledDevice>& devices);

}  // namespace syncopate::cli
