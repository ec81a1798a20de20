#include "device/cluster_file.hpp"

#include <fmt/format.h>

#include "config/toml_table.hpp"

namespace syncopate {
namespace {

// Wide enough for any device, narrow enough to catch a slip of the unit.
constexpr Interval seconds{1e-6, 86'400};
constexpr Interval samples_per_second{1e-2, 1e9};
constexpr Interval overheads{0, 86'400};  // seconds
constexpr Interval sample_counts{1, 1 << 20};
constexpr Interval device_counts{1, most_workers};
constexpr Interval jitters{0, 0.99};
constexpr Interval outages{1e-2, 86'400};  // seconds: a step overlaps a bounded number of them
constexpr Interval bandwidths{1e3, 1e15};  // bytes per second
constexpr Interval latencies{0, 3'600};

Duration batch_time(const TomlTable& table, double batch_samples) {
  const auto time = table.number("seconds_per_batch", seconds);
  const auto speed = table.number("samples_per_second", samples_per_second);
  if (time.has_value() == speed.has_value()) {
    table.refuse(fmt::format("expected seconds_per_batch or samples_per_second, found {}",
                             time ? "both" : "neither"));
  }
  const double batch_seconds = time ? *time : batch_samples / *speed;
  if (batch_seconds < seconds.least || batch_seconds > seconds.most) {
    table.refuse(
        fmt::format("expected {} to {} s for a batch of {} samples, found {:.3g} s; change "
                    "samples_per_second = {}",
                    seconds.least, seconds.most, batch_samples, batch_seconds, *speed));
  }
  return from_seconds(batch_seconds);
}

Duration step_overhead(const TomlTable& table, Duration batch_time) {
  const double overhead = table.number("seconds_per_step", overheads).value_or(0);
  if (overhead >= to_seconds(batch_time)) {
    table.refuse(fmt::format(
        "seconds_per_step: expected less than the {:.3g} s of a batch, of which it is the part "
        "that does not grow with the samples, found {}",
        to_seconds(batch_time), overhead));
  }
  return from_seconds(overhead);
}

void read_devices(const TomlTable& table, std::uint32_t batch_samples,
                  std::vector<DeviceProfile>& devices) {
  table.allow({"name", "count", "batch_samples", "seconds_per_batch", "samples_per_second",
               "seconds_per_step", "jitter", "batch_size"});
  DeviceProfile profile;
  profile.name = table.text("name").value_or(fmt::format("device-{}", devices.size()));
  profile.batch_samples = table.whole("batch_samples", sample_counts).value_or(batch_samples);
  profile.batch_time = batch_time(table, profile.batch_samples);
  profile.step_overhead = step_overhead(table, profile.batch_time);
  profile.jitter = table.number("jitter", jitters).value_or(0);
  profile.batch_size = table.whole("batch_size", sample_counts);
  devices.insert(devices.end(), table.whole("count", device_counts).value_or(1), profile);
}

PauseProfile read_pauses(const TomlTable& table) {
  table.allow({"every", "lasting"});
  const double every = table.needed_number("every", outages);
  const double lasting = table.needed_number("lasting", outages);
  if (lasting >= every) {
    table.refuse(fmt::format("expected outages shorter than every = {}, found lasting = {}", every,
                             lasting));
  }
  return {from_seconds(every), from_seconds(lasting)};
}

LinkProfile read_link(const TomlTable& table) {
  table.allow({"bandwidth", "latency"});
  LinkProfile link;
  link.bandwidth = table.number("bandwidth", bandwidths).value_or(link.bandwidth);
  link.latency =
      from_seconds(table.number("latency", latencies).value_or(to_seconds(link.latency)));
  return link;
}

constexpr const char* title = "a cluster file";

ClusterFile cluster_in(const TomlTable& table, const std::filesystem::path& path) {
  table.allow({"name", "batch_samples", "devices", "pauses", "link"});
  ClusterFile cluster;
  cluster.name = table.text("name").value_or(path.stem().string());
  const std::uint32_t batch_samples = table.whole("batch_samples", sample_counts).value_or(64);
  for (const TomlTable& device : table.tables("devices")) {
    read_devices(device, batch_samples, cluster.devices);
    if (static_cast<double>(cluster.devices.size()) > device_counts.most) {
      device.refuse(fmt::format("expected at most {} devices in a cluster, found {} up to here",
                                device_counts.most, cluster.devices.size()));
    }
  }
  if (cluster.devices.empty()) {
    table.refuse("expected at least one [[devices]], found none");
  }
  if (const auto pauses = table.table("pauses")) {
    cluster.pauses = read_pauses(*pauses);
  }
  if (const auto link = table.table("link")) {
    cluster.link = read_link(*link);
  }
  return cluster;
}

}  // namespace

ClusterFile read_cluster_file(const std::filesystem::path& path) {
  return cluster_in(TomlTable::read(path, title), path);
}

ClusterFile parse_cluster_file(std::string_view text, const std::filesystem::path& path) {
  return cluster_in(TomlTable::parse(text, path.string(), title), path);
}

}  // namespace syncopate
