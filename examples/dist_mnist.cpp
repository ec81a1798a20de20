// Trains a small convolutional network on images in MNIST's format, by a loop of its own.
// Usage: syncopate run -n 2 -- dist_mnist [fashion-mnist|mnist|synthetic [EPOCHS [IMAGES]]]
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

/// Images and labels as tensors; the pixels are from 0 to 1.
struct Tensors {
  torch::Tensor images;
  torch::Tensor labels;
};

Tensors tensors_of(const syncopate::ImageSet& set, std::int64_t most) {
  const auto count = std::min(static_cast<std::int64_t>(set.samples()), most);
  Tensors tensors{torch::empty({count, 1, set.shape.height, set.shape.width}),
                  torch::empty({count}, torch::kInt64)};
  std::transform(set.pixels.begin(), set.pixels.begin() + tensors.images.numel(),
                 tensors.images.data_ptr<float>(),
                 [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
  std::copy_n(set.labels.begin(), count, tensors.labels.data_ptr<std::int64_t>());
  return tensors;
}

class Images : public torch::data::Dataset<Images> {
 public:
  explicit Images(Tensors tensors) : tensors_(std::move(tensors)) {}

  torch::data::Example<> get(std::size_t index) override {
    const auto at = static_cast<std::int64_t>(index);
    return {tensors_.images[at], tensors_.labels[at]};
  }
  torch::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(tensors_.labels.size(0));
  }

 private:
  Tensors tensors_;
};

double accuracy(Net& net, const Tensors& test) {
  const torch::NoGradGuard no_grad;
  net.eval();
  std::int64_t correct = 0;
  for (std::int64_t at = 0; at < test.labels.size(0); at += test_batch) {
    const auto part = torch::indexing::Slice(at, at + test_batch);
    const auto guesses = net.forward(test.images.index({part})).argmax(1);
    correct += guesses.eq(test.labels.index({part})).sum().item<std::int64_t>();
  }
  net.train();
  return static_cast<double>(correct) / static_cast<double>(test.labels.size(0));
}

void train(const std::string& name, int epochs, std::int64_t images) {
  auto job = syncopate::init();
  const syncopate::Dataset data = syncopate::load_dataset(name, "");
  const Tensors test = tensors_of(data.test, images);
  auto loader = job.partition_dataset(
      Images(tensors_of(data.train, images)).map(torch::data::transforms::Stack<>()), batch_size);

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
    train(argc > 1 ? argv[1] : "fashion-mnist", argc > 2 ? std::atoi(argv[2]) : 2,
          argc > 3 ? std::atoi(argv[3]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_mnist: %s\n", error.what());
    return 1;
  }
  return 0;
}
