#include "job/launch/program_environment.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "job/launch/job_key.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::json;

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

std::string text_of(const PortRange& ports) {
  return ports ? fmt::format("{}-{}", ports.first, ports.last) : "";
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
  const bool between_hosts = !launch.key_file.empty();
  std::vector<Variable> variables{{coordinator_variable, launch.coordinator},
                                  {key_variable, between_hosts ? "" : launch.key},
                                  {rank_variable, std::to_string(launch.rank)},
                                  {size_variable, std::to_string(launch.size)},
                                  {local_rank_variable, std::to_string(launch.local_rank)},
                                  {options_variable, Json(launch.options).dump()}};
  if (between_hosts) {  // on one host the user's own variables stay as they are
    variables.push_back({key_file_variable, launch.key_file});
    variables.push_back({interface_variable, launch.place.interface});
    variables.push_back({ports_variable, text_of(launch.place.ports)});
  }
  return variables;
}

std::vector<Variable> torch_variables_of(const ProgramLaunch& launch, std::uint32_t here,
                                         const std::string& master) {
  const auto colon = master.rfind(':');
  return {{"RANK", std::to_string(launch.rank)},
          {"WORLD_SIZE", std::to_string(launch.size)},
          {"LOCAL_RANK", std::to_string(launch.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(here)},
          {"MASTER_ADDR", master.substr(0, colon)},
          {"MASTER_PORT", master.substr(colon + 1)}};
}

std::optional<ProgramLaunch> program_launch_in(const Environment& environment) {
  const std::string coordinator = environment(coordinator_variable);
  if (coordinator.empty() || environment(rank_variable).empty()) {
    return std::nullopt;
  }
  ProgramLaunch launch{.coordinator = coordinator,
                       .key = environment(key_variable),
                       .rank = number_in_variable(environment, rank_variable),
                       .size = number_in_variable(environment, size_variable),
                       .local_rank = number_in_variable(environment, local_rank_variable),
                       .options = options_in(environment(options_variable))};
  if (launch.key.empty()) {
    launch.key_file = environment(key_file_variable);
    launch.key = read_key(launch.key_file, key_file_variable);
    launch.address = {};
    launch.place = own_place(environment);
    launch.encrypted = true;
  }
  if (launch.rank >= launch.size) {
    throw ConfigError(
        fmt::format("{} calls this process worker {} of {}: {} and {} contradict "
                    "each other",
                    coordinator_variable, launch.rank, launch.size, rank_variable, size_variable));
  }
  return launch;
}

}  // namespace syncopate
