#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/cores.hpp"
#include "cli/bench/device_profiles.hpp"
#include "cli/compute/compute.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/exit_status.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {
namespace {

/// Number of workers with `threads` threads each for which this machine has cores; at least 1.
std::uint32_t workers_of_cores(std::uint32_t threads) {
  return std::max(1U, available_cores() / threads);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ProfiledDevice profile(const ProfileCommand& command, const std::string& device) {
  fmt::print(stderr, "measuring {}: {}, mini-batches of {}, for {:g} s\n", device, command.network,
             command.batch_size, command.effort.seconds);
  const auto measured = [&](std::uint32_t samples, double seconds) {
    return step_seconds({.network = command.network,
                         .device = device,
                         .samples = samples,
                         .effort = {.rounds = {}, .seconds = seconds},
                         .threads = command.threads,
                         .image_size = command.image_size});
  };
  constexpr double share_of_whole = 0.7;
  const double time = command.effort.seconds;
  const std::vector<double> whole = measured(command.batch_size, share_of_whole * time);
  ProfiledDevice profiled{.name = profile_name(host_name(), device),
                          .count = device == "cpu" ? workers_of_cores(command.threads) : 1,
                          .samples_per_second = command.batch_size / mean(whole),
                          .jitter = jitter_of(whole)};
  if (command.batch_size % 4 == 0) {  // a quarter is exact
    const std::vector<double> quarter =
        measured(command.batch_size / 4, (1 - share_of_whole) * time);
    profiled.seconds_per_step = seconds_per_step(mean(whole), mean(quarter));
  }
  return profiled;
}

}  // namespace

int profile_here(const ProfileCommand& command) {
  const std::vector<std::string> available = torch_backend::available_devices();
  std::vector<std::string> names;
  for (const std::string& device : available) {
    names.push_back(profile_name(host_name(), device));
  }
  expect_target(command, names);
  std::vector<ProfiledDevice> devices;
  for (const std::string& device : available) {
    devices.push_back(profile(command, device));
  }
  if (command.out.empty()) {
    fmt::print("{}", device_tables(command, devices).substr(1));
    return exit_status::success;
  }
  write_profiles(command, devices);
  fmt::print("{} has {} device{} of this machine\n", command.out.string(), devices.size(),
             devices.size() == 1 ? "" : "s");
  return exit_status::success;
}

}  // namespace syncopate::cli
