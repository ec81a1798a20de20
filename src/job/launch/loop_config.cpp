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
     "compress-remote", "servers", "trace", "run-dir", "wait-limit", "on-nan", "schedule",
     "schedule-step", "schedule-factor", "warm-up"});

/// The program says them with its dataset (`set_batch`).
constexpr std::string_view batch_name = "batch-size";
constexpr std::string_view global_batch_name = "global-batch";
constexpr std::string_view balance_name = "balance";

bool is_loop_field(const Field& field) {
  return field.of_scheme ? field.name != balance_name
                         : std::ranges::find(kept_names, field.name) != kept_names.end();
}

const OptionSpec& data_order() {
  static const OptionSpec spec = spec_of(data_order_option);
  return spec;
}

std::vector<const OptionSpec*> options_of_loops() {
  std::vector<const OptionSpec*> options;
  for (const Field& field : train_fields()) {
    if (is_loop_field(field)) {
      options.push_back(&field);
    }
  }
  options.push_back(&data_order());
  return options;
}

/// The network and the data of a program have no names by which another process could find them.
constexpr NetworkSpec program_network{.name = "program"};
constexpr const char* program_data = "its own data";

/// Errors: ConfigError if no option of loops has the name.
void expect_loop_option(const std::string& name) {
  std::vector<std::string_view> names;
  for (const OptionSpec* const option : loop_options()) {
    names.push_back(option->name);
  }
  if (std::ranges::find(names, name) != names.end()) {
    return;
  }
  if (name == global_batch_name || name == balance_name) {
    throw ConfigError(
        fmt::format("--{} is an option of `syncopate train`: a program passes global_batch to "
                    "partition_dataset, and its steps follow the speeds of the devices",
                    name));
  }
  if (find_field(name) != nullptr) {
    throw ConfigError(fmt::format(
        "--{} is an option of `syncopate train`: a program with a loop of its own decides about "
        "its model, data, batches, optimizer and end itself; leave it out",
        name));
  }
  throw ConfigError(fmt::format("a job has no option {}{}", name, suggestion(name, names)));
}

DataOrder data_order_named(const std::string& text) {
  try {
    return OptionTraits<DataOrder>::read(value_in(data_order(), text));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("--{}: {}", data_order_option.name, error.what()));
  }
}

/// The value of an option that has been checked.
OptionValue value_of(const std::string& name, const std::string& text) {
  if (name == data_order_option.name) {
    return value_in(data_order(), text);
  }
  const Field& field = *find_field(name);
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
  if (config.schedule == ScheduleShape::cosine) {
    throw ConfigError(
        "--schedule cosine ends with the job's epochs, which a program with a loop of its own does "
        "not say: choose step, or change the learning rate of the program's optimizer");
  }
}

}  // namespace

std::span<const OptionSpec* const> loop_options() {
  static const std::vector<const OptionSpec*> options = options_of_loops();
  return options;
}

void check_loop_options(const GivenOptions& given) {
  TrainConfig checked;
  for (const auto& [name, text] : given) {
    expect_loop_option(name);
    if (name == data_order_option.name) {
      data_order_named(text);
    } else {
      set_from_option(*find_field(name), checked, text);
    }
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
    if (value_of(name, found->second) != value_of(name, text)) {
      throw ConfigError(fmt::format("--{} is {} {}, but {} {}; give it in one place", name, text,
                                    later.where, found->second, first.where));
    }
  }
  return merged;
}

void set_batch(GivenOptions& options, std::uint32_t samples, Division division) {
  const bool by_speed = division == Division::by_speed;
  options[std::string(by_speed ? global_batch_name : batch_name)] = std::to_string(samples);
  const auto scheme = options.find("scheme");
  const SchemeSpec& spec =
      scheme_named(scheme == options.end() ? TrainConfig().scheme : scheme->second);
  const bool balances = std::ranges::any_of(
      spec.options, [](const OptionSpec& option) { return option.name == balance_name; });
  if (by_speed && balances) {
    options[std::string(balance_name)] = "true";
  }
}

TrainConfig loop_config(const GivenOptions& options, std::uint32_t workers) {
  TrainConfig config;
  config.network = &program_network;
  config.data = program_data;
  config.workers = workers;
  std::set<std::string_view> names;
  for (const auto& [name, text] : options) {
    if (name != data_order_option.name) {
      set_from_option(*find_field(name), config, text);
      names.insert(name);
    }
  }
  check_given(config, names);
  check_runs_loops(config);
  config.epochs = open_end;
  config.eval_every = {};
  config.checkpoint_every = {};
  config.server_process = ServerProcess::shared;
  return resolve_config(std::move(config), {.devices = devices_of(options),
                                            .of_programs = true,
                                            .usual_learning_rate = usual_learning_rate,
                                            .time = time_for_a_name()});
}

DataOrder data_order_in(const GivenOptions& options, const TrainConfig& config) {
  const auto given = options.find(std::string(data_order_option.name));
  const DataOrder order =
      given == options.end() ? data_order_option.initial : data_order_named(given->second);
  if (config.workers == 1) {
    return DataOrder::fixed;
  }
  if (order != DataOrder::automatic) {
    return order;
  }
  const SchemeTraits traits = traits_of(config);
  const bool own_steps = traits.sync_mode == SyncMode::asynchronous || traits.parts_by_speed;
  return own_steps ? DataOrder::leased : DataOrder::fixed;
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
