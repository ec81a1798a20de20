#include "cli/compare/contestant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "spec/config_fields.hpp"
#include "spec/network_file.hpp"

namespace syncopate::cli {
namespace {

/// Options that must be equal for all schemes, or are given in another way.
constexpr std::array common_to_all{
    "network", "data",       "data-dir", "split",  "split-by-class",  "workers",
    "cluster", "time-scale", "seed",     "epochs", "target-accuracy", "virtual-time",
    "run-dir", "scheme",     "resize",   "shares", "image-size",      "augment"};

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      return parts;
    }
    begin = end + 1;
  }
}

/// "ssgd:compress=topk:0.01:balance" as "ssgd", "compress=topk:0.01", "balance".
std::vector<std::string_view> terms_of(std::string_view contestant) {
  std::vector<std::string_view> terms;
  for (const std::string_view part : parts_of(contestant, ':')) {
    const bool of_a_value = !terms.empty() && terms.back().find('=') != std::string_view::npos &&
                            part.find('=') == std::string_view::npos && find_field(part) == nullptr;
    if (of_a_value) {
      const char* const begin = terms.back().data();
      terms.back() = {begin, static_cast<std::size_t>(part.data() + part.size() - begin)};
    } else {
      terms.push_back(part);
    }
  }
  return terms;
}

const Field& option_named(std::string_view name) {
  if (const Field* field = find_field(name)) {
    if (std::find(common_to_all.begin(), common_to_all.end(), name) != common_to_all.end()) {
      throw ConfigError(fmt::format("{} is common to all schemes of a comparison", name));
    }
    return *field;
  }
  std::vector<std::string_view> names;
  for (const Field& field : train_fields()) {
    names.push_back(field.name);
  }
  throw ConfigError(fmt::format("unknown option {}{}", name, suggestion(name, names)));
}

/// Sets the option of "name=value" or of a switch; returns its name.
std::string_view apply(std::string_view option, TrainConfig& config) {
  const auto equals = option.find('=');
  if (equals != std::string_view::npos) {
    if (const auto now =
            set_old_option(config, option.substr(0, equals), option.substr(equals + 1))) {
      return *now;
    }
  }
  const Field& field = option_named(option.substr(0, equals));
  const bool is_switch = field.type == OptionType::flag;
  if (equals == std::string_view::npos && !is_switch) {
    throw ConfigError(fmt::format("{} needs a value: {}={}", field.name, field.name, field.value));
  }
  try {
    set_field_from_text(field, config,
                        equals == std::string_view::npos ? "true" : option.substr(equals + 1));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", field.name, error.what()));
  }
  return field.name;
}

Contestant read_contestant(std::string_view term, const CommonOptions& common) {
  Contestant contestant{.label = std::string(term),
                        .config = common.config,
                        .learning_rates = common.learning_rates,
                        .batch_sizes = common.batch_sizes};
  const auto parts = terms_of(term);
  set_field_from_text(*find_field("scheme"), contestant.config, parts.front());
  std::set<std::string_view> given;
  for (auto option = parts.begin() + 1; option != parts.end(); ++option) {
    const std::string_view name = apply(*option, contestant.config);
    if (!given.insert(name).second) {
      throw ConfigError(
          fmt::format("expected each option once, found {} again; leave one out", name));
    }
  }
  if (const auto rate = std::exchange(contestant.config.learning_rate, std::nullopt)) {
    contestant.learning_rates = {*rate};
  }
  if (given.contains("batch-size") || given.contains("global-batch")) {
    contestant.batch_sizes.clear();
  }
  check_given(contestant.config, given);
  use_usual_global_batch(contestant, common.devices);
  return contestant;
}

/// Refuses a common option that has an effect on none of the contestants.
void check_common(const std::vector<Contestant>& contestants, const GivenOptions& given) {
  for (const auto& option : given) {
    std::optional<ConfigError> objection;
    const bool means_something =
        std::any_of(contestants.begin(), contestants.end(), [&](const Contestant& contestant) {
          try {
            check_given(contestant.config, {option.first});
            return true;
          } catch (const ConfigError& error) {
            objection.emplace(error);
            return false;
          }
        });
    if (!means_something) {
      throw ConfigError(*objection);
    }
  }
}

/// Reads the values of an option of `train`, separated by commas, each once. The list has the
/// option's name in plural.
template <class Value, class Get>
std::vector<Value> read_candidates(std::string_view list, std::string_view option, Get get) {
  std::vector<Value> values;
  for (const std::string_view text : parts_of(list, ',')) {
    TrainConfig config;
    try {
      set_field_from_text(*find_field(option), config, text);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("--{}s: {}", option, error.what()));
    }
    if (std::find(values.begin(), values.end(), get(config)) != values.end()) {
      throw ConfigError(fmt::format("--{}s: {} appears twice", option, text));
    }
    values.push_back(get(config));
  }
  return values;
}

}  // namespace

TrainConfig baseline_config(const TrainConfig& common, const SchemeSpec& scheme) {
  TrainConfig config = common;
  config.scheme = scheme.name;
  config.servers = has_server(config) ? config.servers : 0;
  return config;
}

std::vector<Contestant> read_contestants(std::string_view list, const CommonOptions& common) {
  std::vector<Contestant> contestants;
  std::set<std::string_view> labels;
  for (const std::string_view term : parts_of(list, ',')) {
    if (!labels.insert(term).second) {
      throw ConfigError(fmt::format("--schemes: '{}' appears twice", term));
    }
    try {
      contestants.push_back(read_contestant(term, common));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("--schemes: '{}': {}", term, error.what()));
    }
  }
  check_common(contestants, common.given);
  return contestants;
}

void use_usual_global_batch(Contestant& contestant, std::optional<std::uint32_t> devices) {
  TrainConfig& config = contestant.config;
  const TrainConfig resolved =
      resolve_config(config, {.devices = devices, .usual_learning_rate = {}, .time = ""});
  const bool has_batch =
      config.batch_size || resolved.global_batch || !contestant.batch_sizes.empty();
  const std::uint32_t workers = resolved.workers;
  if (!has_batch && averages_workers(resolved) && workers > 1) {
    config.batch_size = usual_global_batch(workers, has_batch_norm(*resolved.network)) / workers;
    contestant.usual_batch = true;
  }
}

std::vector<double> read_rates(std::string_view list) {
  return read_candidates<double>(list, "learning-rate",
                                 [](const TrainConfig& config) { return *config.learning_rate; });
}

std::vector<std::uint32_t> read_batch_sizes(std::string_view list) {
  return read_candidates<std::uint32_t>(
      list, "batch-size", [](const TrainConfig& config) { return config.batch_size->of(0); });
}

std::vector<GridPoint> Contestant::grid() const {
  std::vector<GridPoint> points{{}};
  const auto vary = [&](const auto& candidates, auto member) {
    if (candidates.empty()) {
      return;
    }
    std::vector<GridPoint> varied;
    for (const GridPoint& point : points) {
      for (const auto candidate : candidates) {
        varied.push_back(point);
        varied.back().*member = candidate;
      }
    }
    points = std::move(varied);
  };
  vary(batch_sizes, &GridPoint::batch_size);
  vary(learning_rates, &GridPoint::learning_rate);
  return points;
}

}  // namespace syncopate::cli
