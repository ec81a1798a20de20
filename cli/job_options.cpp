#include "cli/job_options.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "config/option.hpp"
#include "config/text.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/job_key.hpp"

namespace syncopate::cli {
namespace {

const std::string rendezvous(option_group::rendezvous);

}  // namespace

void add_gather_limit(CLI::App& app, Duration usual) {
  add_value(
      app, "gather-limit", "SECONDS",
      fmt::format("give up if the job is not complete after this time [{:.0f}]", to_seconds(usual)))
      ->group(rendezvous);
}

Duration gather_limit_of(const CLI::App& app, Duration usual) {
  const auto text = given(app, "--gather-limit");
  if (!text) {
    return usual;
  }
  constexpr double most = 1e6;
  const auto seconds = number_in<double>(*text);
  if (!seconds || !(*seconds > 0 && *seconds <= most)) {
    throw ConfigError(fmt::format(
        "--gather-limit: expected seconds above 0 and up to 1000000, found '{}'", *text));
  }
  return from_seconds(*seconds);
}

void add_secret(CLI::App& app, const std::string& usual) {
  add_value(
      app, "secret", "FILE",
      fmt::format("a file with the job's key, which encrypts its streams; `syncopate key new` "
                  "makes one [that of {}, or {}]",
                  key_file_variable, usual))
      ->group(rendezvous);
}

std::string secret_of(const CLI::App& app) {
  if (const auto file = given(app, "--secret")) {
    return read_key(*file, "--secret");
  }
  const std::string file = from_environment(key_file_variable);
  return file.empty() ? std::string() : read_key(file, key_file_variable);
}

void add_own_place(CLI::App& app) {
  add_value(app, "interface", "NAME",
            fmt::format("network interface by which others reach what this starts [{}, or the "
                        "fastest of all]",
                        interface_variable))
      ->group(rendezvous);
  add_value(
      app, "ports", "FIRST-LAST",
      fmt::format("ports that a firewall lets pass, at which it listens [{}, or any free ones]",
                  ports_variable))
      ->group(rendezvous);
}

OwnPlace own_place_of(const CLI::App& app) {
  OwnPlace place = own_place(from_environment);
  if (const auto interface = given(app, "--interface")) {
    place.interface = *interface;
  }
  if (const auto ports = given(app, "--ports")) {
    if (ports->empty()) {
      throw ConfigError("--ports: expected FIRST-LAST, such as 9100-9199, found nothing");
    }
    place.ports = port_range_in(*ports, "--ports");
  }
  return place;
}

void add_index(CLI::App& app, const std::string& role) {
  add_value(app, "index", "N", fmt::format("index of this {} [the next free one]", role))
      ->group(rendezvous);
}

std::optional<std::uint32_t> index_of(const CLI::App& app) {
  const auto text = given(app, "--index");
  if (!text) {
    return std::nullopt;
  }
  const auto index = number_in<std::uint32_t>(*text);
  if (!index || *index >= most_workers) {
    throw ConfigError(fmt::format(
        "--index: expected a whole number from 0 and below {}, found '{}'", most_workers, *text));
  }
  return index;
}

std::string required(const CLI::App& app, const std::string& option, const std::string& what) {
  const auto value = given(app, option);
  if (!value) {
    throw ConfigError(fmt::format("{} needs {} {}", app.get_name(), option, what));
  }
  return *value;
}

}  // namespace syncopate::cli
