#include "job/launch/loop_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "device/cluster_file.hpp"
#include "job/launch/environment.hpp"

namespace syncopate {
namespace {

constexpr auto kept_names = std::to_array<std::string_view>(
    {"scheme", "cluster", "time-scale", "threads", "weights", "seed", "transport", "compress",
     "compress-remote", "servers", "trace", "run-dir", "wait-limit", "on-nan"});

/// Batches whose sizes follow the speeds would have to come from the job.
constexpr std::string_view of_own_batches = "balance";

bool is_loop_field(const Field& field) {
  return field.of_scheme ? field.name != of_own_batches
                         : std::ranges::find(kept_names, field.name) != kept_names.end();
}

std::vector<const Field*> fields_of_loops() {
  std::vector<const Field*> fields;
  for (const Field& field : train_fields()) {
    if (is_loop_field(field)) {
      fields.push_back(&field);
    }
  }
  return fields;
}

/// The network and the data of a program have no names that another process could look for.
constexpr NetworkSpec program_network{.name = "program"};
constexpr const char* program_data = "its own data";

const Field& loop_field(const std::string& name) {
  const Field* const field = find_field(name);
  if (field != nullptr && is_loop_field(*field)) {
    return *field;
  }
  if (field != nullptr) {
    throw ConfigError(fmt::format(
        "--{} is an option of `syncopate train`: a program with a loop of its own decides about "
        "its model, data, batches, optimizer and end itself; leave it out",
        name));
  }
  std::vector<std::string_view> names;
  for (const Field* const known : loop_fields()) {
    names.push_back(known->name);
  }
  throw ConfigError(fmt::format("a job has no option {}{}", name, suggestion(name, names)));
}

OptionValue value_of(const Field& field, const std::string& text) {
  TrainConfig config;
  set_from_option(field, config, text);
  return comparable_value(field, config);
}

std::optional<std::uint32_t> devices_of(const GivenOptions& options) {
  const auto cluster = options.find("cluster");
  if (cluster == options.end()) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(read_cluster_file(cluster->second).devices.size());
}

void check_runs_loops(const TrainConfig& config) {
  if (config.transport == TransportKind::mpi) {
    throw ConfigError(
        "programs with a loop of their own need sockets: transport mpi is for `syncopate train`");
  }
}

}  // namespace

std::span<const Field* const> loop_fields() {
  static const std::vector<const Field*> fields = fields_of_loops();
  return fields;
}

void check_loop_options(const GivenOptions& given) {
  TrainConfig checked;
  for (const auto& [name, text] : given) {
    set_from_option(loop_field(name), checked, text);
  }
}

GivenOptions merged_options(const OptionSource& first, const OptionSource& later) {
  check_loop_options(later.options);
  GivenOptions merged = first.options;
  for (const auto& [name, text] : later.options) {
    const auto found = merged.find(name);
    if (found == merged.end()) {
      merged.emplace(name, text);
      continue;
    }
    const Field& field = loop_field(name);
    if (value_of(field, found->second) != value_of(field, text)) {
      throw ConfigError(fmt::format("{} is {} {}, but {} {}; give it in one place",
                                    option_of(field), text, later.where, found->second,
                                    first.where));
    }
  }
  return merged;
}

TrainConfig loop_config(const GivenOptions& options, std::uint32_t workers) {
  TrainConfig config;
  config.network = &program_network;
  config.data = program_data;
  config.workers = workers;
  std::set<std::string_view> names;
  for (const auto& [name, text] : options) {
    set_from_option(*find_field(name), config, text);
    names.insert(name);
  }
  check_given(config, names);
  check_runs_loops(config);
  config.epochs = open_end;
  config.eval_every = {};
  config.checkpoint_every = {};
  config.server_process = ServerProcess::shared;
  return resolve_config(std::move(config), {.devices = devices_of(options),
                                            .usual_learning_rate = usual_learning_rate,
                                            .time = time_for_a_name()});
}

std::uint32_t workers_of_loops(const GivenOptions& options, std::uint32_t given) {
  const auto devices = devices_of(options);
  if (devices && given != 0 && given != *devices) {
    throw ConfigError(fmt::format("{} workers do not fit {}, which has {} devices; leave out -n",
                                  given, options.at("cluster"), *devices));
  }
  return devices ? *devices : std::max(given, 1U);
}

std::uint32_t samples_of_loop_step(const TrainConfig& config, std::uint32_t batch) {
  const SchemeSpec& scheme = scheme_named(config.scheme);
  const bool divides = scheme.least_step != nullptr && scheme.pace == nullptr;
  return divides ? scheme.least_step(config.scheme_options, batch) : batch;
}

}  // namespace syncopate
