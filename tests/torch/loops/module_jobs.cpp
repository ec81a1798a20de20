#include <torch/torch.h>

#include <memory>

#include "report/run_folder.hpp"
#include "scheme/scheme_spec.hpp"
#include "sim/job/simulated_job.hpp"
#include "spec/networks.hpp"
#include "tests/support/config_options.hpp"
#include "tests/torch/loops/small_problem.hpp"
#include "torch/module_replica.hpp"

namespace syncopate::test {
namespace {

/// The network of `Linear`, which no configuration file can name.
constexpr NetworkSpec linear{.name = "linear"};

Dataset small_dataset() {
  const SmallData small = small_data();
  Dataset dataset;
  dataset.name = "small";
  dataset.classes = 3;
  dataset.mean = {SmallData::mean};
  dataset.standard_deviation = {SmallData::standard_deviation};
  dataset.train.shape = {.channels = 1, .height = 2, .width = 3};
  dataset.train.pixels = small.pixels;
  dataset.train.labels.assign(small.labels.begin(), small.labels.end());
  dataset.test = dataset.train;
  return dataset;
}

std::unique_ptr<Replica> make_replica() {
  return std::make_unique<torch_backend::ModuleReplica>(torch_backend::ModuleReplica::Options{
      .build = [] { return torch_backend::network_of(std::make_shared<Linear>()); },
      .make_optimizer =
          [](std::vector<torch::Tensor> parameters) {
            return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                                       torch::optim::SGDOptions(0.1).momentum(0.9));
          }});
}

TrainConfig config_of(const std::string& scheme, std::uint32_t workers,
                      const std::map<std::string, std::string>& options) {
  TrainConfig config;
  config.network = &linear;
  config.scheme = scheme;
  config.workers = workers;
  config.epochs = epochs;
  config.batch_size = batch_size;
  config.learning_rate = 0.1;
  config.momentum = 0.9;
  config.run_dir = run_folder();
  set(config, "eval-every", "never");
  set(config, "checkpoint-every", "never");
  for (const auto& [name, value] : options) {
    set(config, name, value);
  }
  return resolve_config(config, {});
}

}  // namespace

std::vector<float> train_by_job(const std::string& scheme, std::uint32_t workers,
                                const std::map<std::string, std::string>& options) {
  const Dataset dataset = small_dataset();
  const TrainConfig config = config_of(scheme, workers, options);
  RunFolder(config.run_dir).create();
  sim::SimulatedJob job({.config = config, .dataset = dataset, .make_replica = make_replica});
  job.run();
  return job.params().front();
}

std::vector<std::string> distributed_schemes() {
  std::vector<std::string> names;
  for (const SchemeSpec* const scheme : all_schemes()) {
    if (scheme->traits.topology != Topology::none) {
      names.emplace_back(scheme->name);
    }
  }
  return names;
}

}  // namespace syncopate::test
