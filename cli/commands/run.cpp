#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "cli/command.hpp"
#include "cli/help_formatter.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"
#include "config/option.hpp"
#include "job/launch/loop_config.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t longest_word = 80;

constexpr const char* run_examples = R"(Examples:
  syncopate run -n 4 -- ./my_program --epochs 3
  syncopate run -n 4 --scheme esync --cluster clusters/mixed.toml -- ./my_program
  syncopate run -n 4 --scheme asgd --servers 2 -- ./my_program

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
  request.config = config_of(request);
  return request;
}

}  // namespace

Command add_run(CLI::App& root, const Handlers& handlers, std::vector<std::string> command) {
  CLI::App* app = root.add_subcommand(
      "run", "Start programs with their own training loops as the workers of one job.");
  add_loop_options(*app);
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
