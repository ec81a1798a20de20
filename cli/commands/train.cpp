#include "cli/command.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* train_examples = R"(Examples:
  syncopate train --network lenet5 --data fashion-mnist --workers 4
  syncopate train --cluster clusters/mixed.toml --target-accuracy 0.85
  syncopate train --config runs/20260131-235959-ssgd-lenet5/config.toml --seed 2
  syncopate train --resume runs/20260131-235959-ssgd-lenet5 --epochs 20
  mpirun -n 5 syncopate train --scheme nbssgd --aggregate server
  srun -n 4 syncopate train --scheme esync --transport tcp)";

constexpr Duration usual_gather_limit = std::chrono::seconds(60);

}  // namespace

Command add_train(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand(
      "train",
      "Train a network with workers on this machine, or with the ranks of mpirun or srun.");
  add_train_options(*app);
  add_gather_limit(*app, usual_gather_limit);
  app->footer(train_examples);
  return {app, [app, &handlers] {
            TrainCommand command = job_of(*app, handlers);
            command.request.gather_limit = gather_limit_of(*app, usual_gather_limit);
            command.request.given = given_options(*app);
            return handlers.train(command);
          }};
}

}  // namespace syncopate::cli
