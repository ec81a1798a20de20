#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "cli/command.hpp"
#include "cli/launch/torch_program.hpp"
#include "cli/train_options.hpp"
#include "cluster/cluster_file.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* examples = R"(Examples:
  syncopate train --network lenet5 --data fashion-mnist --workers 4
  syncopate train --cluster clusters/mixed.toml --target-accuracy 0.85
  syncopate train --config runs/20260131-235959-ssgd-lenet5/config.toml --seed 2
  syncopate train --resume runs/20260131-235959-ssgd-lenet5 --epochs 20)";

/// "20260131-235959", local time.
std::string time_for_a_name() {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

TrainCommand command_of(const CLI::App& app, const Handlers& handlers) {
  TrainConfig config = config_of(app);
  ConfigFacts facts{.devices = {},
                    .usual_learning_rate = handlers.usual_learning_rate,
                    .time = time_for_a_name()};
  if (!config.cluster.empty()) {
    config.cluster = find_cluster_file(config.cluster, installed_clusters());
    const ClusterFile cluster = read_cluster_file(config.cluster);
    facts.devices = static_cast<std::uint32_t>(cluster.devices.size());
  }
  const bool named_run_dir = !config.run_dir.empty();
  return {.config = resolve_config(std::move(config), facts),
          .resumed = app.count("--resume") > 0,
          .named_run_dir = named_run_dir,
          .output = output_of(app)};
}

}  // namespace

Command add_train(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand("train", "Train a network with workers on this machine.");
  add_train_options(*app);
  app->footer(examples);
  return {app, [app, &handlers] { return handlers.train(command_of(*app, handlers)); }};
}

}  // namespace syncopate::cli
