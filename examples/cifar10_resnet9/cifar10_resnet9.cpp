// Trains a ResNet of nine layers on CIFAR-10 by Adam with weight decay; prints accuracy and time.
// Usage: cifar10_resnet9 [FOLDER [EPOCHS]]
//        FOLDER has the files of CIFAR-10's binary version [cifar-10-batches-bin]
#include <torch/torch.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <syncopate/torch.hpp>
#include <system_error>

#include "cifar10.hpp"

namespace {

constexpr std::size_t batch_size = 128;  // of all workers together

/// A convolution, its batch normalisation, and ReLU.
struct ConvBn : torch::nn::Module {
  ConvBn(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride)
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel)
                                                           .stride(stride)
                                                           .padding((kernel - 1) / 2)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(out))) {}

  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm(conv(x))); }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
};

/// Adds two convolutions of the input to the input.
struct Residual : torch::nn::Module {
  explicit Residual(std::int64_t filters)
      : first(register_module("first", std::make_shared<ConvBn>(filters, filters, 3, 1))),
        second(register_module("second", std::make_shared<ConvBn>(filters, filters, 3, 1))) {}

  torch::Tensor forward(const torch::Tensor& x) { return second->forward(first->forward(x)) + x; }

  std::shared_ptr<ConvBn> first, second;
};

torch::nn::Sequential resnet9() {
  using std::make_shared;
  return torch::nn::Sequential(make_shared<ConvBn>(3, 16, 7, 4), make_shared<ConvBn>(16, 32, 3, 2),
                               make_shared<Residual>(32), make_shared<ConvBn>(32, 64, 3, 2),
                               make_shared<ConvBn>(64, 128, 3, 2), make_shared<Residual>(128),
                               torch::nn::Flatten(), torch::nn::Linear(128, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 10));
}

double accuracy(torch::nn::Sequential& net, const Cifar10& test) {
  const torch::NoGradGuard no_grad;
  net->eval();
  const torch::Tensor guesses = net->forward(test.images()).argmax(1);
  net->train();
  return guesses.eq(test.labels()).to(torch::kFloat64).mean().item<double>();
}

void train(const std::string& folder, int epochs) {
  auto job = syncopate::init();
  const Cifar10 test(folder, {"test_batch.bin"});
  const Cifar10 images(folder, {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                "data_batch_4.bin", "data_batch_5.bin"});
  auto loader =
      job.partition_dataset(Cifar10(images).map(torch::data::transforms::Stack<>()), batch_size);

  torch::nn::Sequential net = resnet9();
  job.broadcast_parameters(*net);
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-3).weight_decay(1e-3));
  syncopate::DistributedOptimizer optimizer(job, *net, adam);

  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double loss_sum = 0;
    std::int64_t samples = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(net->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step(batch.target.size(0));
      samples += batch.target.size(0);
      loss_sum += loss.item<double>() * static_cast<double>(batch.target.size(0));
    }
    torch::Tensor sums = torch::tensor({loss_sum, static_cast<double>(samples)}, torch::kFloat64);
    job.allreduce(sums);
    if (job.rank() == 0) {
      const std::chrono::duration<double> took = Clock::now() - begin;
      std::printf("epoch %d: loss %.3f, accuracy %.4f, %.1f s\n", epoch,
                  sums[0].item<double>() / sums[1].item<double>(), accuracy(net, test),
                  took.count());
      std::fflush(stdout);
    }
  }
}

/// Errors: invalid_argument.
int number_in(const std::string& text, const char* name) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1) {
    throw std::invalid_argument(std::string(name) + ": expected a whole number from 1 on, found " +
                                text);
  }
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "cifar-10-batches-bin",
          argc > 2 ? number_in(argv[2], "EPOCHS") : 10);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "cifar10_resnet9: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cifar10_resnet9: %s\n", error.what());
    return 1;
  }
  return 0;
}
