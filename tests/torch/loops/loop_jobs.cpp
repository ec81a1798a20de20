#include "tests/torch/loops/loop_jobs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::test {
namespace {

constexpr std::uint32_t samples = 64;
constexpr std::size_t pixels = 6;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::unique_ptr<Transport> listening(const std::string& key) {
  return listen_over("shm", {.token = key, .control_only = true});
}

}  // namespace

Linear::Linear() {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters()) {
    const auto count = parameter.numel();
    parameter.copy_((torch::arange(count) / static_cast<double>(count) - 0.4)
                        .to(torch::kFloat32)
                        .view(parameter.sizes()));
  }
}

std::vector<float> values_of(const torch::nn::Module& module) {
  std::vector<float> values;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor flat = parameter.detach().contiguous();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return values;
}

Dataset small_dataset() {
  Dataset dataset;
  dataset.name = "small";
  dataset.classes = 3;
  dataset.mean = {0.4F};
  dataset.standard_deviation = {0.3F};
  Random random(3);
  dataset.train.shape = dataset.test.shape = {.channels = 1, .height = 2, .width = 3};
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const auto label = static_cast<Label>(sample % 3);
    dataset.train.labels.push_back(label);
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const auto noise = static_cast<std::uint32_t>(random.bits() % 120);
      dataset.train.pixels.push_back(
          static_cast<std::uint8_t>(noise + (pixel % 3 == label ? 130 : 0)));
    }
  }
  dataset.test.pixels = dataset.train.pixels;
  dataset.test.labels = dataset.train.labels;
  return dataset;
}

torch::data::Example<> SmallImages::get(std::size_t index) {
  Batch batch;
  const std::array indices{static_cast<std::uint32_t>(index)};
  gather(data_, data_.train, indices, batch);
  return {torch::tensor(batch.features).view({1, 2, 3}), torch::tensor(batch.labels.front())};
}

ThreadedPrograms::ThreadedPrograms(std::uint32_t programs)
    : programs_(programs), key_("a key of this test alone"), world_(listening(key_)) {
  address_ = world_.transport().address();
}

std::vector<std::string> ThreadedPrograms::run(const Program& program) {
  std::thread coordinator([this] {
    failure_ = message_of([this] { ProgramHost(world_, {.programs = programs_}).run(); });
    world_.transport().close(world_.now() + std::chrono::seconds(2));
  });
  std::vector<std::string> errors(programs_);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < programs_; ++rank) {
    threads.emplace_back([&, rank] {
      const JobEntry entry{.coordinator = address_,
                           .key = key_,
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

std::string run_folder() {
  static int number = 0;
  const auto folder = std::filesystem::path(testing::TempDir()) /
                      ("loop-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
  std::filesystem::remove_all(folder);
  return folder.string();
}

std::vector<float> train_by_loop(const InitOptions& init, std::size_t batch_size, int epochs) {
  TorchJob job = syncopate::init(init);
  auto loader =
      job.partition_dataset(SmallImages().map(torch::data::transforms::Stack<>()), batch_size);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  {
    DistributedOptimizer optimizer(job, net, sgd);
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

}  // namespace syncopate::test
