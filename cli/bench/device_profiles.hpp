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
  std::optional<std::uint32_t> image_size = {};  ///< side; empty: 28, or the least that it takes
  Effort effort{.rounds = {}, .seconds = 3};
  std::filesystem::path out = {};  ///< a cluster file; empty: standard output
  bool add = false;                ///< to the devices that the file has
};

/// A device as it was measured.
struct ProfiledDevice {
  std::string name;
  std::uint32_t count = 1;  ///< as many of them are on this machine
  double samples_per_second = 0;
  double jitter = 0;  ///< standard deviation of a step's time over its mean
};

/// Standard deviation over mean, at most 0.99. The slowest percent of the times does not count:
/// another program had the device meanwhile.
double jitter_of(std::vector<double> seconds);

/// The devices in the form of a cluster file, each with a comment of how it was measured.
std::string device_tables(const ProfileCommand& command,
                          const std::vector<ProfiledDevice>& devices);

/// The name of a device in a cluster file: that of its host and its own, without what TOML takes
/// for syntax.
std::string profile_name(std::string host, const std::string& device);

/// Before anything is measured. Errors: ConfigError, for a file that is there where the command
/// does not say to add, for one that is no cluster file, and for one that has a device of these
/// names; DataError.
void expect_target(const ProfileCommand& command, const std::vector<std::string>& names);

/// Writes a cluster file with these devices, or adds them to the one that is there, which a link
/// may name. Errors: as `expect_target`; also ConfigError, where the result is no cluster file: the
/// file is then as before.
void write_profiles(const ProfileCommand& command, const std::vector<ProfiledDevice>& devices);

}  // namespace syncopate::cli
