#include "cli/bench/device_profiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "device/cluster_file.hpp"

namespace syncopate::cli {
namespace {

void expect_new_names(const std::filesystem::path& file, const ClusterFile& cluster,
                      const std::vector<ProfiledDevice>& devices) {
  for (const ProfiledDevice& device : devices) {
    if (std::any_of(cluster.devices.begin(), cluster.devices.end(),
                    [&](const DeviceProfile& one) { return one.name == device.name; })) {
      throw ConfigError(fmt::format(
          "{} has a device {} already; remove its [[devices]] table to measure it again",
          file.string(), device.name));
    }
  }
}

/// What comes before the devices of this machine.
std::string text_before(const ProfileCommand& command, const std::vector<ProfiledDevice>& devices) {
  if (!is_there(command.out)) {
    return fmt::format(
        "# Written by `syncopate profile`. Train as on these devices:\n"
        "# syncopate train --virtual-time --cluster {}\n",
        command.out.string());
  }
  expect_target(command);
  expect_new_names(command.out, read_cluster_file(command.out), devices);
  return read_file(command.out);
}

}  // namespace

double jitter_of(std::vector<double> seconds) {
  constexpr double most = 0.99;
  if (seconds.size() < 2) {
    return 0;
  }
  std::sort(seconds.begin(), seconds.end());
  seconds.resize(seconds.size() - seconds.size() / 100);
  const auto count = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  const double squares =
      std::accumulate(seconds.begin(), seconds.end(), 0.0,
                      [&](double sum, double one) { return sum + (one - mean) * (one - mean); });
  return std::min(std::sqrt(squares / count) / mean, most);
}

void expect_target(const ProfileCommand& command) {
  if (command.out.empty() || !is_there(command.out)) {
    return;
  }
  if (!command.add) {
    throw ConfigError(fmt::format(
        "{} exists; choose another file, or --add to add the devices of this machine to it",
        command.out.string()));
  }
  read_cluster_file(command.out);
}

std::string device_tables(const ProfileCommand& command,
                          const std::vector<ProfiledDevice>& devices) {
  std::string text;
  for (const ProfiledDevice& device : devices) {
    text += fmt::format(
        "\n# {}, mini-batches of {}, {} CPU thread{}\n"
        "[[devices]]\nname = \"{}\"\ncount = {}\nsamples_per_second = {:.1f}\njitter = {:.3f}\n",
        command.network, command.batch_size, command.threads, command.threads == 1 ? "" : "s",
        device.name, device.count, device.samples_per_second, device.jitter);
  }
  return text;
}

void write_profiles(const ProfileCommand& command, const std::vector<ProfiledDevice>& devices) {
  const std::string before = text_before(command, devices);
  write_file(command.out, before + device_tables(command, devices));
}

}  // namespace syncopate::cli
