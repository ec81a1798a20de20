#include "job/launch/job_request.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.hpp"
#include "data/dataset.hpp"

namespace syncopate {

TrainConfig config_of_joiner(const TrainConfig& job, const GivenOptions& given,
                             std::string_view whose) {
  TrainConfig config = job;
  for (const auto& [name, text] : given) {
    const Field& field = *find_field(name);
    TrainConfig expected = job;
    set_from_option(field, expected, text);
    if (is_of_the_machine(field)) {
      set_from_option(field, config, text);
    } else if (comparable_value(field, expected) != comparable_value(field, job)) {
      throw ConfigError(fmt::format("{} is {} here, but {} in {}", option_of(field), text,
                                    shown_value(field, job), whose));
    }
  }
  return config;
}

void check_described(const TrainConfig& job, std::string_view whose) {
  check_config(job);
  if (!job.learning_rate || !job.weights) {
    throw ConfigError(
        fmt::format("{} lacks {} in its configuration; start its coordinator by this version of "
                    "Syncopate",
                    whose, job.learning_rate ? "weights" : "learning_rate"));
  }
}

bool is_of_the_machine(const Field& field) {
  return field.name == "data-dir" || field.name == "device" || field.name == "threads" ||
         field.name == "run-dir";
}

OptionValue comparable_value(const Field& field, const TrainConfig& config) {
  const OptionValue value = get_field(field, config);
  const auto* const path = std::get_if<std::string>(&value);
  const auto is_path = [&] {
    return field.type == OptionType::path || (field.name == "data" && is_data_folder(*path)) ||
           (field.name == "network" && !config.network->file.empty());
  };
  if (path == nullptr || !is_path()) {
    return value;
  }
  return std::filesystem::absolute(*path).lexically_normal().string();
}

std::string shown_value(const Field& field, const TrainConfig& config) {
  const std::string text = to_text(get_field(field, config));
  return text.empty() ? "not set" : text;
}

std::string option_of(const Field& field) {
  return fmt::format("--{}", field.name);
}

void set_from_option(const Field& field, TrainConfig& config, const std::string& text) {
  try {
    set_field_from_text(field, config, text);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", option_of(field), error.what()));
  }
}

}  // namespace syncopate
