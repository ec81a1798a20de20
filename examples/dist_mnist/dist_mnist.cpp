// Trains a small convolutional network on images in MNIST's format, data-parallel.
// Usage: dist_mnist [FOLDER [EPOCHS [IMAGES]]]
//        FOLDER has the four unpacked files of MNIST or Fashion-MNIST [data]
//        IMAGES: train on as many alone
// Exit status: 2 for arguments or files that do not do, 1 for another error.
#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
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

double accuracy(Net& net, const torch::data::datasets::MNIST& test, torch::Device device) {
  const torch::NoGradGuard no_grad;
  net.eval();
  std::int64_t correct = 0;
  const std::int64_t count = test.targets().size(0);
  for (std::int64_t at = 0; at < count; at += test_batch) {
    const std::int64_t length = std::min(test_batch, count - at);
    const auto images = test.images().narrow(0, at, length).to(device);
    const auto targets = test.targets().narrow(0, at, length).to(device);
    correct += net.forward(images).argmax(1).eq(targets).sum().item<std::int64_t>();
  }
  net.train();
  return static_cast<double>(correct) / static_cast<double>(count);
}

struct Arguments {
  std::string folder = "data";
  std::size_t epochs = 2;
  std::size_t images = 60000;
};

std::size_t number_in(std::string_view text, const std::string& name) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) {
    throw std::invalid_argument(name + ": expected a whole number from 1 on, found '" +
                                std::string(text) + "'");
  }
  return number;
}

Arguments arguments_in(int argc, char** argv) {
  Arguments arguments;
  if (argc > 1) arguments.folder = argv[1];
  if (argc > 2) arguments.epochs = number_in(argv[2], "EPOCHS");
  if (argc > 3) arguments.images = number_in(argv[3], "IMAGES");
  for (const char* const name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const auto file = std::filesystem::path(arguments.folder) / name;
    if (!std::filesystem::exists(file)) {
      throw std::invalid_argument("FOLDER: expected the four unpacked files of MNIST, found no " +
                                  file.string());
    }
  }
  return arguments;
}

void train(const Arguments& arguments) {
  using torch::data::datasets::MNIST;
  auto job = syncopate::init();
  const torch::Device device = job.device();  // a GPU of its own, where there are some
  const MNIST test(arguments.folder, MNIST::Mode::kTest);
  auto loader = job.partition_dataset(FirstImages(MNIST(arguments.folder), arguments.images)
                                          .map(torch::data::transforms::Stack<>()),
                                      batch_size);

  torch::manual_seed(job.rank());  // another network on each worker, until the next call
  Net net;
  net.to(device);
  job.broadcast_parameters(net);
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  syncopate::DistributedOptimizer optimizer(job, net, sgd);

  for (std::size_t epoch = 1; epoch <= arguments.epochs; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss =
          torch::nll_loss(net.forward(batch.data.to(device)), batch.target.to(device));
      loss.backward();
      optimizer.step(batch.target.size(0));
    }
    if (job.rank() == 0) {
      std::printf("epoch %zu: accuracy %.4f\n", epoch, accuracy(net, test, device));
      std::fflush(stdout);
    }
  }
  optimizer.finish();

  torch::Tensor weights = torch::zeros({1});
  for (const torch::Tensor& parameter : net.parameters()) {
    weights += parameter.detach().abs().sum().cpu();
  }
  std::printf("worker %u of %u: sum of weights %.6f\n", job.rank(), job.size(),
              weights.item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(arguments_in(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "dist_mnist: %s\n", error.what());
    return 2;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "dist_mnist: %s\n", error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_mnist: %s\n", error.what());
    return 1;
  }
  return 0;
}
