#include "job/launch/program_environment.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::json;

constexpr const char* coordinator_variable = "SYNCOPATE_COORDINATOR";
constexpr const char* key_variable = "SYNCOPATE_KEY";
constexpr const char* rank_variable = "SYNCOPATE_RANK";
constexpr const char* size_variable = "SYNCOPATE_SIZE";
constexpr const char* local_rank_variable = "SYNCOPATE_LOCAL_RANK";
constexpr const char* options_variable = "SYNCOPATE_OPTIONS";

std::uint32_t number_in_variable(const Environment& environment, const char* name) {
  const std::string text = environment(name);
  const auto number = number_in<std::uint32_t>(text);
  if (!number) {
    throw ConfigError(
        fmt::format("expected {} to be a number, found '{}'; start the program by "
                    "`syncopate run`",
                    name, text));
  }
  return *number;
}

/// Errors: ConfigError.
GivenOptions options_in(const std::string& text) {
  try {
    return text.empty() ? GivenOptions() : Json::parse(text).get<GivenOptions>();
  } catch (const Json::exception&) {
    throw ConfigError(
        fmt::format("expected {} to hold options as JSON, found '{}'", options_variable, text));
  }
}

}  // namespace

std::vector<Variable> variables_of(const ProgramLaunch& launch) {
  return {{coordinator_variable, launch.coordinator},
          {key_variable, launch.key},
          {rank_variable, std::to_string(launch.rank)},
          {size_variable, std::to_string(launch.size)},
          {local_rank_variable, std::to_string(launch.local_rank)},
          {options_variable, Json(launch.options).dump()}};
}

std::vector<Variable> torch_variables_of(const ProgramLaunch& launch, const std::string& port) {
  return {{"RANK", std::to_string(launch.rank)},
          {"WORLD_SIZE", std::to_string(launch.size)},
          {"LOCAL_RANK", std::to_string(launch.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(launch.size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port}};
}

std::optional<ProgramLaunch> program_launch_in(const Environment& environment) {
  const std::string coordinator = environment(coordinator_variable);
  if (coordinator.empty()) {
    return std::nullopt;
  }
  ProgramLaunch launch{.coordinator = coordinator,
                       .key = environment(key_variable),
                       .rank = number_in_variable(environment, rank_variable),
                       .size = number_in_variable(environment, size_variable),
                       .local_rank = number_in_variable(environment, local_rank_variable),
                       .options = options_in(environment(options_variable))};
  if (launch.rank >= launch.size) {
    throw ConfigError(
        fmt::format("{} calls this process worker {} of {}: {} and {} contradict "
                    "each other",
                    coordinator_variable, launch.rank, launch.size, rank_variable, size_variable));
  }
  return launch;
}

}  // namespace syncopate
