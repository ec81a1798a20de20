// Trains a module of this program with ESync, by two workers that are threads of this process.
// Usage: module_job RUN_FOLDER
#include <torch/torch.h>

#include <cstdio>

#include "job/front/job.hpp"
#include "torch/module_replicas.hpp"

namespace {

struct Classifier : torch::nn::Module {
  Classifier()
      : hidden(register_module("hidden", torch::nn::Linear(28 * 28, 64))),
        output(register_module("output", torch::nn::Linear(64, 10))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    return output(torch::relu(hidden(images.flatten(1))));
  }

  torch::nn::Linear hidden, output;
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<torch::Tensor> tensors) {
  return std::make_unique<torch::optim::SGD>(std::move(tensors),
                                             torch::optim::SGDOptions(0.05).momentum(0.9));
}

int train(const char* run_folder) {
  const syncopate::JobSpec spec{.scheme = "esync",
                                .workers = 2,
                                .options = {{"epochs", "2"},
                                            {"batch-size", "64"},
                                            {"learning-rate", "0.05"},
                                            {"run-dir", run_folder}}};
  auto job = syncopate::Job::start(
      spec, {.name = "classifier",
             .make_replica = syncopate::module_replicas(
                 [] { return std::make_shared<Classifier>(); }, make_optimizer),
             .dataset = syncopate::load_dataset("synthetic", {})});
  std::puts("started");
  std::fflush(stdout);
  const syncopate::JobResult result = job.wait();
  std::printf("accuracy %.4f\n", result.accuracy.value_or(0));
  std::printf("parameters equal: %s\n", result.params[0] == result.params[1] ? "yes" : "no");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? argv[1] : "runs/esync-module");
  } catch (const syncopate::Error& error) {
    std::fprintf(stderr, "module_job: %s\n", error.what());
    return 1;
  }
}
