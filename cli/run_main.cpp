#include "base/thread_stacks.hpp"
#include "cli/handlers.hpp"
#include "cli/view/training_view.hpp"
#include "job/program/run_programs.hpp"

namespace {

using namespace syncopate;

int run(const cli::RunCommand& command) {
  const cli::OutputOptions output{.verbosity = command.request.verbosity, .json = command.json};
  return run_programs(command.request,
                      [&](const TrainConfig& config) { return cli::make_view(config, output); });
}

}  // namespace

/// `syncopate-run`: the same command line as `syncopate`, only for `run`, without libtorch.
int main(int argc, char** argv) {
  const cli::Handlers handlers{.train = {},
                               .coordinate = {},
                               .join = {},
                               .compare = {},
                               .bench = {},
                               .doctor = {},
                               .networks = {},
                               .usual_learning_rate = {},
                               .run = run};
  prepare_thread_stacks();
  return cli::run_cli(argc, argv, handlers);
}
