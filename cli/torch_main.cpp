#include "base/thread_stacks.hpp"
#include "cli/compute/compute.hpp"
#include "cli/handlers.hpp"
#include "cli/report/report_command.hpp"
#include "cli/view/training_view.hpp"
#include "job/roles/run_job.hpp"
#include "torch/factory.hpp"

namespace {

using namespace syncopate;

OpenView view_of(syncopate::log::Verbosity verbosity, bool json) {
  return [output = cli::OutputOptions{.verbosity = verbosity, .json = json}](
             const TrainConfig& config) { return cli::make_view(config, output); };
}

std::vector<torch_backend::NetworkFacts> networks(const cli::NetworksCommand& command) {
  return torch_backend::all_network_facts(command.input, command.classes);
}

}  // namespace

/// `syncopate-torch`: the same command line as `syncopate`, with libtorch loaded. It is not started
/// for `run`.
int main(int argc, char** argv) {
  const cli::Handlers handlers{
      .train =
          [](const cli::TrainCommand& command) {
            return train_job(command.request, view_of(command.request.verbosity, command.json));
          },
      .coordinate =
          [](const cli::CoordinatorCommand& command) {
            return coordinate_job(command.request,
                                  view_of(command.request.job.verbosity, command.json));
          },
      .join = join_job,
      .compare = cli::compare_and_report,
      .bench = cli::bench_here,
      .doctor = cli::doctor_here,
      .networks = networks,
      .usual_learning_rate = usual_learning_rate,
      .run = {},
      .profile = cli::profile_here};
  prepare_thread_stacks();
  return cli::run_cli(argc, argv, handlers);
}
