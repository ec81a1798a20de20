#include <torch/torch.h>

#include <memory>
#include <utility>

#include "job/front/job.hpp"
#include "scheme/scheme_spec.hpp"
#include "tests/torch/loops/small_problem.hpp"
#include "torch/module_replicas.hpp"

namespace syncopate::test {
namespace {

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

}  // namespace

std::vector<float> train_by_job(const std::string& scheme, std::uint32_t workers,
                                std::map<std::string, std::string> options) {
  options.insert({{"epochs", std::to_string(epochs)},
                  {"batch-size", std::to_string(batch_size)},
                  {"learning-rate", "0.1"},
                  {"momentum", "0.9"},
                  {"eval-every", "never"},
                  {"checkpoint-every", "never"},
                  {"run-dir", run_folder()}});
  const auto make_optimizer = [](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                               torch::optim::SGDOptions(0.1).momentum(0.9));
  };
  Job job = Job::start(
      {.scheme = scheme, .workers = workers, .options = std::move(options)},
      {.name = "linear",
       .make_replica = module_replicas([] { return std::make_shared<Linear>(); }, make_optimizer),
       .dataset = small_dataset()});
  return job.wait().params.front();
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
