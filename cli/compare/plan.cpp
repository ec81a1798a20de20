#include "cli/compare/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "config/toml_table.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/config_fields.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view limit_label = "limit";

std::string quoted_toml(const std::string& text) {
  return to_toml(OptionValue(text));
}

std::string device_text(const DeviceProfile& device) {
  std::string text =
      fmt::format("\n[[devices]]\nname = {}\nsamples_per_second = {}\njitter = {}\n",
                  quoted_toml(device.name), device.samples_per_second(), device.jitter);
  if (device.step_overhead > Duration::zero()) {
    text += fmt::format("batch_samples = {}\nseconds_per_step = {}\n", device.batch_samples,
                        to_seconds(device.step_overhead));
  }
  if (device.batch_size) {
    text += fmt::format("batch_size = {}\n", *device.batch_size);
  }
  return text;
}

/// The ranks of the fastest devices, ascending.
std::vector<std::size_t> fastest_ranks(const ClusterFile& cluster, std::uint32_t count) {
  std::vector<std::size_t> ranks = by_speed(cluster, count);
  std::ranges::sort(ranks);
  return ranks;
}

/// `items`: one for each device, or fewer.
template <class Item>
std::vector<Item> of_ranks(const std::vector<std::size_t>& ranks, const std::vector<Item>& items) {
  std::vector<Item> kept;
  for (const std::size_t rank : ranks) {
    if (rank < items.size()) {
      kept.push_back(items[rank]);
    }
  }
  return kept;
}

}  // namespace

std::string Run::name() const {
  std::string name = contestant;
  std::replace(name.begin(), name.end(), ':', '+');
  std::replace(name.begin(), name.end(), '/', '_');
  if (point.batch_size) {
    name += fmt::format("-b{}", *point.batch_size);
  }
  if (point.learning_rate) {
    name += fmt::format("-lr{}", *point.learning_rate);
  }
  return fmt::format("{}-seed{}{}", name, seed, virtual_time ? "-virtual" : "");
}

const Contestant& ComparisonPlan::contestant(const std::string& label) const {
  const auto found = std::find_if(contestants.begin(), contestants.end(),
                                  [&](const Contestant& one) { return one.label == label; });
  if (found == contestants.end()) {
    throw InternalError("a comparison has no contestant " + label);
  }
  return *found;
}

std::uint64_t ComparisonPlan::grid_seed() const {
  constexpr std::uint64_t most_seeds = 9999;
  return common.seed > 0 ? common.seed - 1 : most_seeds;
}

std::vector<Run> ComparisonPlan::grid() const {
  std::vector<Run> runs;
  for (const Contestant& one : contestants) {
    const std::vector<GridPoint> points = one.grid();
    if (points.size() < 2) {
      continue;
    }
    for (const GridPoint& point : points) {
      runs.push_back({.contestant = one.label,
                      .point = point,
                      .seed = grid_seed(),
                      .virtual_time = grid_in_virtual_time || one.is_limit});
    }
  }
  return runs;
}

std::vector<Run> ComparisonPlan::finals(const ChosenPoints& points) const {
  std::vector<Run> runs;
  for (std::uint32_t i = 0; i < seeds; ++i) {
    for (const Contestant& one : contestants) {
      runs.push_back({.contestant = one.label,
                      .point = points.at(one.label),
                      .seed = common.seed + i,
                      .virtual_time = virtual_time || one.is_limit});
    }
  }
  return runs;
}

std::size_t ComparisonPlan::size() const {
  return grid().size() + seeds * contestants.size();
}

TrainConfig ComparisonPlan::config_of(const Run& run) const {
  TrainConfig config = contestant(run.contestant).config;
  config.seed = run.seed;
  config.learning_rate = run.point.learning_rate;
  if (run.point.batch_size) {
    config.batch_size = run.point.batch_size;
    config.global_batch.reset();
  }
  config.virtual_time = run.virtual_time;
  config.target_accuracy = until_target ? target : std::nullopt;
  config.run_dir.clear();
  return config;
}

Json agreement_of(const ComparisonPlan& plan, const std::string& cluster_text) {
  Json agreement;
  TrainConfig common = plan.common;
  common.target_accuracy = plan.until_target ? plan.target : std::nullopt;
  // The names of runs contain these fields.
  for (const Field& field : train_fields()) {
    if (field.name != "scheme" && field.name != "seed" && field.name != "learning-rate" &&
        field.name != "virtual-time" && field.name != "run-dir") {
      agreement[std::string(field.name)] = to_text(get_field(field, common));
    }
  }
  if (common.workers == 0) {
    agreement["workers"] = "0";  // as in comparisons that an earlier version began
  }
  agreement["content of the cluster file"] = cluster_text;
  return agreement;
}

std::string difference(const Json& here, const Json& there) {
  for (const auto& [name, value] : here.items()) {
    const Json other = there.value(name, Json());
    if (value != other) {
      return name.find(' ') == std::string::npos
                 ? fmt::format("{} is {} here, but {} there", name, value.dump(), other.dump())
                 : fmt::format("the {} differs", name);
    }
  }
  return "";
}

Contestant limit_of(const CommonOptions& common, const std::filesystem::path& cluster_file) {
  Contestant limit{.label = std::string(limit_label),
                   .config = common.config,
                   .learning_rates = common.learning_rates,
                   .batch_sizes = common.batch_sizes,
                   .is_limit = true};
  limit.config.scheme = sequential_scheme().name;
  limit.config.cluster = cluster_file;
  limit.config.workers = 0;
  limit.config.servers = 0;
  // One device sends nothing, and shares its data with no other.
  limit.config.compress = {};
  limit.config.compress_remote = false;
  limit.config.shares.clear();
  limit.config.weights.reset();
  limit.config.device = limit.config.device.substr(0, limit.config.device.find(','));
  return limit;
}

std::string one_device_file(const ClusterFile& cluster) {
  double speed = 0;
  for (const DeviceProfile& device : cluster.devices) {
    speed += device.samples_per_second();
  }
  return fmt::format(
      "# One device as fast as all of {} together.\nname = \"limit\"\n\n[[devices]]\nname = "
      "\"limit\"\nsamples_per_second = {}\n",
      cluster.name, speed);
}

std::uint32_t fast_devices_of(const ClusterFile& cluster) {
  double fastest = 0;
  for (const DeviceProfile& device : cluster.devices) {
    fastest = std::max(fastest, device.samples_per_second());
  }
  // Rounding of the times must not exclude a device at exactly half.
  const double least = least_share_of_fastest * fastest * (1 - 1e-6);
  return static_cast<std::uint32_t>(std::ranges::count_if(
      cluster.devices,
      [&](const DeviceProfile& device) { return device.samples_per_second() >= least; }));
}

std::vector<std::size_t> by_speed(const ClusterFile& cluster, std::size_t count) {
  std::vector<std::size_t> ranks(cluster.devices.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::ranges::stable_sort(ranks, std::ranges::greater{}, [&](std::size_t rank) {
    return cluster.devices[rank].samples_per_second();
  });
  ranks.resize(count);
  return ranks;
}

ClusterFile fastest_of(const ClusterFile& cluster, std::uint32_t count) {
  ClusterFile part = cluster;
  part.name = fmt::format("fastest-{}", count);
  part.devices = of_ranks(fastest_ranks(cluster, count), cluster.devices);
  return part;
}

std::string cluster_file_of(const ClusterFile& cluster) {
  std::string text = fmt::format("name = {}\n", quoted_toml(cluster.name));
  for (const DeviceProfile& device : cluster.devices) {
    text += device_text(device);
  }
  if (cluster.pauses) {
    text += fmt::format("\n[pauses]\nevery = {}\nlasting = {}\n", to_seconds(cluster.pauses->every),
                        to_seconds(cluster.pauses->lasting));
  }
  return text + fmt::format("\n[link]\nbandwidth = {}\nlatency = {}\n", cluster.link.bandwidth,
                            to_seconds(cluster.link.latency));
}

Contestant baseline_of(const SchemeSpec& scheme, const CommonOptions& common) {
  return {.label = std::string(scheme.name),
          .config = baseline_config(common.config, scheme),
          .learning_rates = common.learning_rates,
          .batch_sizes = common.batch_sizes};
}

Contestant on_fastest(Contestant one, std::uint32_t count, const ClusterFile& cluster,
                      const std::filesystem::path& cluster_file) {
  const std::vector<std::size_t> ranks = fastest_ranks(cluster, count);
  one.fastest = count;
  one.config.cluster = cluster_file;
  one.config.workers = 0;
  one.config.shares = of_ranks(ranks, one.config.shares);
  const std::vector<std::string_view> devices = entries_of(one.config.device);
  if (devices.size() > 1) {
    one.config.device = fmt::format("{}", fmt::join(of_ranks(ranks, devices), ","));
  }
  return one;
}

}  // namespace syncopate::cli
