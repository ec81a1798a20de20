#include "cli/bench/device_profiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "device/cluster_file.hpp"

namespace syncopate::cli {
namespace {

void expect_new_names(const std::filesystem::path& file, const ClusterFile& cluster,
                      const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::any_of(cluster.devices.begin(), cluster.devices.end(),
                    [&](const DeviceProfile& one) { return one.name == name; })) {
      throw ConfigError(fmt::format(
          "{} has a device {} already; remove its [[devices]] table to measure it again",
          file.string(), name));
    }
  }
}

std::vector<std::string> names_of(const std::vector<ProfiledDevice>& devices) {
  std::vector<std::string> names;
  for (const ProfiledDevice& device : devices) {
    names.push_back(device.name);
  }
  return names;
}

constexpr const char* head_of_file =
    "# Written by `syncopate profile`. Train as on these devices:\n"
    "# syncopate train --virtual-time --cluster THIS_FILE\n";

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

double seconds_per_step(double whole, double quarter) {
  constexpr double most = 0.9;
  return std::clamp((4 * quarter - whole) / 3, 0.0, most * whole);
}

std::string profile_name(std::string host, const std::string& device) {
  std::string name = std::move(host) + "-" + device;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char character) { return std::isalnum(character) == 0 && character != '.'; },
      '-');
  return name;
}

void expect_target(const ProfileCommand& command, const std::vector<std::string>& names) {
  if (command.out.empty() || !is_there(command.out)) {
    return;
  }
  if (!std::filesystem::is_regular_file(command.out)) {
    throw ConfigError(
        fmt::format("{} is no regular file; choose another name, or leave out --out to print "
                    "the devices",
                    command.out.string()));
  }
  if (!command.add) {
    throw ConfigError(fmt::format(
        "{} exists; choose another file, or --add to add the devices of this machine to it",
        command.out.string()));
  }
  expect_new_names(command.out, read_cluster_file(command.out), names);
}

std::string device_tables(const ProfileCommand& command,
                          const std::vector<ProfiledDevice>& devices) {
  std::string text;
  for (const ProfiledDevice& device : devices) {
    text += fmt::format(
        "\n# {}, mini-batches of {}, {} CPU thread{}\n"
        "[[devices]]\nname = \"{}\"\ncount = {}\nbatch_samples = {}\nsamples_per_second = {:.6g}\n"
        "seconds_per_step = {:.3g}\njitter = {:.3f}\n",
        command.network, command.batch_size, command.threads, command.threads == 1 ? "" : "s",
        device.name, device.count, command.batch_size, device.samples_per_second,
        device.seconds_per_step, device.jitter);
  }
  return text;
}

void write_profiles(const ProfileCommand& command, const std::vector<ProfiledDevice>& devices) {
  expect_target(command, names_of(devices));
  const bool adds = is_there(command.out);
  const std::filesystem::path file = adds ? std::filesystem::canonical(command.out) : command.out;
  const auto mode =
      adds ? static_cast<unsigned>(std::filesystem::status(file).permissions()) : readable_by_all;
  const std::string text =
      (adds ? read_file(file) : head_of_file) + device_tables(command, devices);
  parse_cluster_file(text, command.out);
  write_file(file, text, mode);
}

}  // namespace syncopate::cli
