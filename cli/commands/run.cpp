#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "cli/command.hpp"
#include "cli/help_formatter.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"
#include "config/option.hpp"
#include "config/range_text.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/job_key.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/loop_config.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t longest_word = 80;

constexpr const char* run_examples = R"(Examples:
  syncopate run -n 4 -- ./my_program --epochs 3
  syncopate run -n 4 --scheme esync --cluster clusters/mixed.toml -- ./my_program
  syncopate run -n 4 --scheme asgd --servers 2 -- ./my_program
  syncopate run -n 4 --ranks 0-1 --listen node1:9091 --secret job.key -- ./my_program   (on node1)
  syncopate run -n 4 --ranks 2-3 --join node1:9091 --secret job.key -- ./my_program     (on node2)

The program calls syncopate::init and takes its steps through a DistributedOptimizer. It may give
the scheme and its options itself.)";

/// Zero if the user does not give the number of workers.
std::uint32_t workers_given(const CLI::App& app) {
  const auto text = given(app, "--workers");
  if (!text) {
    return 0;
  }
  TrainConfig config;
  set_from_option(*find_field("workers"), config, *text);
  return config.workers;
}

/// The first and the last rank that `--ranks` gives to this host. Errors: ConfigError.
std::pair<std::uint32_t, std::uint32_t> ranks_of(const std::string& text, std::uint32_t workers) {
  const auto ranks = range_in<std::uint32_t>(text);
  if (!ranks || ranks->second >= workers) {
    throw ConfigError(fmt::format(
        "--ranks: expected FIRST-LAST or one rank, below the {} workers of -n, found '{}'", workers,
        text));
  }
  return *ranks;
}

/// The file of the key. Errors: ConfigError without one; those of `secret_of`.
std::filesystem::path key_file_of(const CLI::App& app) {
  if (secret_of(app).empty()) {
    throw ConfigError(fmt::format(
        "a job on several hosts needs a key: make one by `syncopate key new FILE`, copy it to each "
        "host, and give it by --secret FILE or {}",
        key_file_variable));
  }
  return given(app, "--secret").value_or(from_environment(key_file_variable));
}

/// Empty if the whole job is on this host. Errors: ConfigError.
std::optional<HostPart> part_of(const CLI::App& app, std::uint32_t workers) {
  const auto listen = given(app, "--listen");
  const auto join = given(app, "--join");
  const auto ranks = given(app, "--ranks");
  if (!listen && !join) {
    if (ranks) {
      throw ConfigError("--ranks is for a job on several hosts: give --listen or --join, too");
    }
    return std::nullopt;
  }
  if (listen && join) {
    throw ConfigError("--listen is for the host of worker 0, --join for the others: give one");
  }
  if (!ranks) {
    throw ConfigError(
        "a job on several hosts needs --ranks on each, such as -n 4 --ranks 0-1 on the first of "
        "two");
  }
  const std::string& address = listen ? *listen : *join;
  expect_port(address, listen ? "--listen" : "--join");
  const auto [first, last] = ranks_of(*ranks, workers);
  if ((first == 0) != listen.has_value()) {
    throw ConfigError(first == 0
                          ? "worker 0 is on the host that listens: --listen in place of --join"
                          : "the host that listens starts worker 0: --ranks from 0 on");
  }
  return HostPart{.first = first,
                  .count = last - first + 1,
                  .coordinates = listen.has_value(),
                  .address = address,
                  .key_file = key_file_of(app),
                  .place = own_place_of(app)};
}

bool suits(const ProgramsRequest& request, std::string_view scheme) {
  GivenOptions given = request.given;
  given["scheme"] = scheme;
  try {
    loop_config(given, request.workers);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

bool suit_any_scheme(const ProgramsRequest& request) {
  return std::ranges::any_of(
      all_schemes(), [&](const SchemeSpec* scheme) { return suits(request, scheme->name); });
}

/// Without `--scheme` the programs may choose a scheme that fits the other options: then this
/// process needs only the run folder and the limit of waits. Options that fit no scheme are refused
/// here, once, instead of by every worker.
TrainConfig config_of(const ProgramsRequest& request) {
  if (request.given.contains("scheme") || !suit_any_scheme(request)) {
    return loop_config(request.given, request.workers);
  }
  GivenOptions own = request.given;
  std::erase_if(own, [](const auto& option) {
    return option.first != "run-dir" && option.first != "wait-limit";
  });
  return loop_config(own, request.workers);
}

/// Refuses arguments that are not meant for `run`, with a message that names the mistake.
void check_left(const CLI::App& app) {
  const auto left = app.remaining();
  if (left.empty()) {
    return;
  }
  const std::string& first = left.front();
  if (!first.starts_with('-')) {
    throw ConfigError(
        fmt::format("unexpected argument '{0}': put -- before the program and its "
                    "arguments: syncopate run -n 2 -- {0}",
                    excerpt(first, longest_word)));
  }
  const std::string name = first.substr(0, first.find('=')).substr(first.starts_with("--") ? 2 : 1);
  if (find_field(name) != nullptr) {
    check_loop_options({{name, ""}});
  }
}

ProgramsRequest request_of(const CLI::App& app, std::vector<std::string> command) {
  if (command.empty()) {
    throw ConfigError("run needs the program to start, after --: syncopate run -n 4 -- ./program");
  }
  ProgramsRequest request{.command = std::move(command),
                          .given = given_loop_options(app),
                          .config = {},
                          .gather_limit = gather_limit_of(app, patient_gather_limit),
                          .verbosity = output_of(app).verbosity};
  if (const auto cluster = request.given.find("cluster"); cluster != request.given.end()) {
    cluster->second = std::filesystem::absolute(cluster->second).string();
  }
  request.workers = workers_of_loops(request.given, workers_given(app));
  request.part = part_of(app, request.workers);
  request.config = config_of(request);
  return request;
}

}  // namespace

Command add_run(CLI::App& root, const Handlers& handlers, std::vector<std::string> command) {
  CLI::App* app = root.add_subcommand(
      "run", "Start programs with their own training loops as the workers of one job.");
  add_loop_options(*app);
  const std::string rendezvous(option_group::rendezvous);
  add_value(*app, "listen", "HOST:PORT",
            "on the host of worker 0: address at which others reach it [this host alone]")
      ->group(rendezvous);
  add_value(*app, "join", "HOST:PORT", "on each other host: that address")->group(rendezvous);
  add_value(*app, "ranks", "FIRST-LAST", "with these: the workers of -n that this host starts")
      ->group(rendezvous);
  add_own_place(*app);
  add_secret(*app, "none");
  add_gather_limit(*app, patient_gather_limit);
  add_short_help(*app);
  app->footer(run_examples);
  return {.app = app,
          .run =
              [app, &handlers, command = std::move(command)] {
                return handlers.run(
                    {.request = request_of(*app, command), .json = output_of(*app).json});
              },
          .check_left = [app] { check_left(*app); }};
}

}  // namespace syncopate::cli
