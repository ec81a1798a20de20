#include <filesystem>
#include <utility>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"
#include "job/launch/loop_config.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* run_examples = R"(Examples:
  syncopate run -n 4 -- ./my_program --epochs 3
  syncopate run -n 4 --scheme esync --cluster clusters/mixed.toml -- ./my_program
  syncopate run -n 4 --scheme asgd --servers 2 -- ./my_program

The program calls syncopate::init and takes its steps through a DistributedOptimizer. It may give
the scheme and its options itself.)";

std::uint32_t workers_given(const CLI::App& app) {
  TrainConfig config;
  if (const auto text = given(app, "--workers")) {
    set_from_option(*find_field("workers"), config, *text);
  }
  return config.workers;
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
  // Without a scheme the programs may give one that fits the other options.
  const bool known = request.given.contains("scheme");
  request.config = loop_config(known ? request.given : GivenOptions(), request.workers);
  return request;
}

}  // namespace

Command add_run(CLI::App& root, const Handlers& handlers, std::vector<std::string> command) {
  CLI::App* app = root.add_subcommand(
      "run", "Start programs that train by loops of their own, as the workers of one job.");
  add_loop_options(*app);
  add_gather_limit(*app, patient_gather_limit);
  app->footer(run_examples);
  return {
      app, [app, &handlers, command = std::move(command)] {
        return handlers.run({.request = request_of(*app, command), .json = output_of(*app).json});
      }};
}

}  // namespace syncopate::cli
