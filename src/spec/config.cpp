#include "spec/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "config/text.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {
namespace {

std::optional<Every::Unit> unit_of(std::string_view name) {
  if (name == "step" || name == "steps") {
    return Every::Unit::steps;
  }
  if (name == "epoch" || name == "epochs") {
    return Every::Unit::epochs;
  }
  if (name == "s" || name == "second" || name == "seconds") {
    return Every::Unit::seconds;
  }
  return std::nullopt;
}

constexpr std::size_t letters_of_a_period = 80;

[[noreturn]] void refuse_period(std::string_view text) {
  throw ConfigError(
      fmt::format("expected a period such as 200steps, 0.5epochs, 10s or never; found '{}'",
                  excerpt(text, letters_of_a_period)));
}

/// Errors: ConfigError if the period is too long or too short to be counted.
void check_amount(Every::Unit unit, double amount, std::string_view text) {
  constexpr double least = 1e-9;
  const double most = unit == Every::Unit::steps    ? at_least_one.most
                      : unit == Every::Unit::epochs ? epochs_above_zero.most
                                                    : seconds_above_zero.most;
  if (amount < least || amount > most) {
    throw ConfigError(
        fmt::format("expected a period from {} to {} of its unit, found '{}'", least, most, text));
  }
}

}  // namespace

Every Every::parse(std::string_view text) {
  const std::string_view period = trimmed(text);
  if (period == "never") {
    return {};
  }
  const auto amount = leading_number<double>(period);
  const auto unit = amount ? unit_of(trimmed(amount->rest)) : std::nullopt;
  if (!unit || !std::isfinite(amount->number) || amount->number <= 0) {
    refuse_period(text);
  }
  check_amount(*unit, amount->number, text);
  const Every every{.unit = *unit, .amount = amount->number};
  if (every.unit == Unit::steps && every.amount != std::floor(every.amount)) {
    throw ConfigError(fmt::format("expected a whole number of steps, found '{}'", text));
  }
  return every;
}

std::string Every::to_string() const {
  switch (unit) {
    case Unit::never: return "never";
    case Unit::steps: return fmt::format("{} step{}", amount, amount == 1 ? "" : "s");
    case Unit::epochs: return fmt::format("{} epoch{}", amount, amount == 1 ? "" : "s");
    case Unit::seconds: return fmt::format("{} s", amount);
  }
  return "never";
}

Split split_of(const TrainConfig& config) {
  return config.split_by_class ? Split{.kind = Split::Kind::by_class} : config.split;
}

bool parts_differ(const TrainConfig& config) {
  return split_of(config).is_skewed() && config.workers > 1;
}

SchemeJob scheme_job_of(const TrainConfig& config) {
  return {.workers = config.workers, .options = config.scheme_options};
}

SchemeTraits traits_of(const TrainConfig& config) {
  return scheme_named(config.scheme).traits_in(scheme_job_of(config));
}

bool is_paced(const TrainConfig& config) {
  return scheme_named(config.scheme).pace != nullptr;
}

bool averages_workers(const TrainConfig& config) {
  return traits_of(config).topology == Topology::allreduce;
}

bool requires_mpi(const TrainConfig& config) {
  const ReducerSpec* const reducer = config.scheme_options[option::aggregate].reducer;
  return config.transport == TransportKind::mpi ||
         (averages_workers(config) && reducer != nullptr &&
          reducer->transport == name_of_value(TransportKind::mpi));
}

bool has_server(const TrainConfig& config) {
  return server_keeps_model(config) ||
         (averages_workers(config) && config.scheme_options[option::aggregate].by_server);
}

bool server_keeps_model(const TrainConfig& config) {
  return traits_of(config).topology == Topology::server;
}

bool may_compress(const TrainConfig& config) {
  const bool by_server_alone = averages_workers(config) && has_server(config);
  return traits_of(config).compresses && !by_server_alone;
}

bool uses_shared_model(const TrainConfig& config) {
  return traits_of(config).topology == Topology::shared_memory;
}

ServerPolicy server_policy_of(const TrainConfig& config) {
  const SchemeSpec& scheme = scheme_named(config.scheme);
  return scheme.server_policy ? scheme.server_policy(config.scheme_options) : ServerPolicy{};
}

Schedule schedule_of(const TrainConfig& config) {
  if (!config.learning_rate) {
    throw InternalError("a schedule was made before the learning rate was resolved");
  }
  return Schedule({.shape = config.schedule,
                   .learning_rate = *config.learning_rate,
                   .epochs = config.epochs,
                   .warm_up = config.warm_up.value_or(0),
                   .step_epochs = config.schedule_step,
                   .factor = config.schedule_factor});
}

namespace {

bool is_device(std::string_view name) {
  constexpr std::array<std::string_view, 3> plain{"auto", "cpu", "cuda"};
  constexpr std::string_view numbered = "cuda:";
  if (!name.starts_with(numbered)) {
    return std::find(plain.begin(), plain.end(), name) != plain.end();
  }
  const std::string_view number = name.substr(numbered.size());
  return !number.empty() && number.size() <= 3 &&
         std::all_of(number.begin(), number.end(),
                     [](unsigned char digit) { return std::isdigit(digit) != 0; });
}

}  // namespace

bool is_device_list(std::string_view text) {
  const std::vector<std::string_view> entries = entries_of(text);
  return std::all_of(entries.begin(), entries.end(), is_device);
}

void check_devices(const TrainConfig& config) {
  const std::size_t devices = entries_of(config.device).size();
  if (devices > 1 && devices != config.workers) {
    throw ConfigError(fmt::format(
        "device {} lists {} devices for {} worker{}; list one for each worker, or name one for all",
        config.device, devices, config.workers, config.workers == 1 ? "" : "s"));
  }
}

std::string device_of_worker(const TrainConfig& config, std::uint32_t rank) {
  const std::vector<std::string_view> devices = entries_of(config.device);
  if (devices.size() == 1) {
    return config.device;
  }
  if (rank >= devices.size()) {
    throw ConfigError(fmt::format("device {} lists {} devices, none of them for worker {}",
                                  config.device, devices.size(), rank));
  }
  return std::string(devices[rank]);
}

}  // namespace syncopate
