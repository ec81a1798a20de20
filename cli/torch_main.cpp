#include "cli/compare/comparison.hpp"
#include "cli/compute/bench_here.hpp"
#include "cli/compute/doctor_here.hpp"
#include "cli/run_cli.hpp"
#include "job/roles/coordinate_here.hpp"
#include "job/roles/join_job.hpp"
#include "job/roles/train_here.hpp"
#include "torch/factory.hpp"

/// `syncopate-torch`: the same command line as `syncopate`, with libtorch at hand.
int main(int argc, char** argv) {
  using namespace syncopate;
  const cli::Handlers handlers{
      .train = cli::train_here,
      .coordinate = cli::coordinate_here,
      .join = cli::join_job,
      .compare = cli::compare,
      .bench = cli::bench_here,
      .doctor = cli::doctor_here,
      .networks =
          [](const cli::NetworksCommand& command) {
            std::vector<torch_backend::NetworkFacts> facts;
            for (const NetworkSpec& network : all_networks()) {
              facts.push_back(torch_backend::network_facts({.name = std::string(network.name),
                                                            .input = command.input,
                                                            .classes = command.classes}));
            }
            return facts;
          },
      .usual_learning_rate = usual_learning_rate};
  return cli::run_cli(argc, argv, handlers);
}
