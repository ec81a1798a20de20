// Trains a small convolutional network on images in MNIST's format, data-parallel.
// Usage: dist_mnist [FOLDER [EPOCHS [IMAGES]]]
//        FOLDER has the four unpacked files of MNIST or Fashion-MNIST [data]
//        IMAGES: train on as many alone
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <syncopate/torch.hpp>

namespace {

constexpr std::size_t batch_size = 64;  // of all workers together
constexpr std::int64_t test_batch = 500;

struct Net : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(first(x), 2));
    x = torch::relu(torch::max_pool2d(second(x), 2));
    x = torch::relu(hidden(x.flatten(1)));
    return torch::log_softmax(output(x), 1);
  }

  torch::nn::Conv2d first{register_module("first", torch::nn::Conv2d(1, 10, 5))};
  torch::nn::Conv2d second{register_module("second", torch::nn::Conv2d(10, 20, 5))};
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(320, 50))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(50, 10))};
};

/// The first images of a dataset.
class FirstImages : public torch::data::Dataset<FirstImages> {
 public:
  FirstImages(torch::data::datasets::MNIST images, std::size_t count)
      : images_(std::move(images)), count_(std::min(count, *images_.size())) {}

  torch::data::Example<> get(std::size_t index) override { return images_.get(index); }
  torch::optional<std::size_t> size() const override { return count_; }

 private:
  torch::data::datasets::MNIST images_;
  std::size_t count_;
};

double accuracy(Net& net, const torch::data::datasets::MNIST& test) {
  const torch::NoGradGuard no_grad;
  net.eval();
  std::int64_t correct = 0;
  const std::int64_t count = test.targets().size(0);
  for (std::int64_t at = 0; at < count; at += test_batch) {
    const auto guesses = net.forward(test.images().narrow(0, at, test_batch)).argmax(1);
    correct += guesses.eq(test.targets().narrow(0, at, test_batch)).sum().item<std::int64_t>();
  }
  net.train();
  return static_cast<double>(correct) / static_cast<double>(count);
}

void train(const std::string& folder, int epochs, std::size_t images) {
  using torch::data::datasets::MNIST;
  auto job = syncopate::init();
  const MNIST test(folder, MNIST::Mode::kTest);
  auto loader = job.partition_dataset(
      FirstImages(MNIST(folder), images).map(torch::data::transforms::Stack<>()), batch_size);

  torch::manual_seed(job.rank());  // another network on each worker, until the next call
  Net net;
  job.broadcast_parameters(net);
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  syncopate::DistributedOptimizer optimizer(job, net, sgd);

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nll_loss(net.forward(batch.data), batch.target);
      loss.backward();
      optimizer.step(batch.target.size(0));
    }
    if (job.rank() == 0) {
      std::printf("epoch %d: accuracy %.4f\n", epoch, accuracy(net, test));
      std::fflush(stdout);
    }
  }
  optimizer.finish();

  torch::Tensor weights = torch::zeros({1});
  for (const torch::Tensor& parameter : net.parameters()) {
    weights += parameter.detach().abs().sum();
  }
  std::printf("worker %u of %u: sum of weights %.6f\n", job.rank(), job.size(),
              weights.item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "data", argc > 2 ? std::atoi(argv[2]) : 2,
          argc > 3 ? static_cast<std::size_t>(std::atol(argv[3])) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_mnist: %s\n", error.what());
    return 1;
  }
  return 0;
}
