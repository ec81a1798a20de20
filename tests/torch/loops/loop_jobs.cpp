#include "tests/torch/loops/loop_jobs.hpp"

#include <thread>

namespace syncopate::test {
namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::vector<std::string> ThreadedPrograms::run(const Program& program) {
  std::thread coordinator([this] { failure_ = coordinator_.run(); });
  std::vector<std::string> errors(programs_);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < programs_; ++rank) {
    threads.emplace_back([&, rank] {
      const JobEntry entry{.coordinator = coordinator_.address(),
                           .key = coordinator_.key(),
                           .rank = rank,
                           .size = programs_,
                           .local_rank = rank};
      errors[rank] = message_of([&] { program(entry); });
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  coordinator.join();
  return errors;
}

std::vector<float> train_by_loop(const InitOptions& init, std::size_t batch_size, int epochs,
                                 const DistributedOptions& options) {
  TorchJob job = syncopate::init(init);
  auto loader =
      job.partition_dataset(SmallImages().map(torch::data::transforms::Stack<>()), batch_size);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  {
    DistributedOptimizer optimizer(job, net, sgd, options);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (auto& batch : *loader) {
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(net.forward(batch.data), batch.target).backward();
        optimizer.step(batch.target.size(0));
      }
    }
  }
  return values_of(net);
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace syncopate::test
