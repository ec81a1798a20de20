// A scheme of one's own: gossip. After each local step a worker averages its parameters with those
// of one neighbour, with that on its left and that on its right in turn. Usage: your_own_scheme
// [STEPS]
#include <torch/torch.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <syncopate/torch.hpp>
#include <system_error>
#include <vector>

namespace {

constexpr std::uint32_t batch_size = 32;

class Gossip final : public syncopate::Scheme {
 public:
  void after_backward(syncopate::SchemeStep& step) override {
    step.take_step();
    syncopate::Group& workers = step.workers();
    const bool right = (workers.rank() + steps_++) % 2 == 0;
    const std::uint32_t neighbour = right ? workers.rank() + 1 : workers.rank() - 1;
    if (neighbour >= workers.size()) {
      return;  // beyond one end of the row; -1 is a large number
    }
    const syncopate::Values own = step.parameters();
    const std::size_t bytes = own.size() * sizeof(float);
    theirs_.resize(own.size());
    auto receive = workers.receive_async(theirs_.data(), bytes, neighbour);
    workers.send(own.data(), bytes, neighbour);
    receive.wait();
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = (own[i] + theirs_[i]) / 2;
    }
  }

 private:
  std::uint32_t steps_ = 0;
  std::vector<float> theirs_;
};

/// The network to imitate: from 64 values to 8.
torch::Tensor teacher(const torch::Tensor& x) {
  static const torch::Tensor weights = [] {
    torch::manual_seed(1);
    return torch::randn({64, 8});
  }();
  return torch::tanh(x.matmul(weights));
}

void train(int steps) {
  syncopate::register_scheme("gossip", [] { return std::make_unique<Gossip>(); });
  auto job = syncopate::init();
  torch::nn::Sequential net(torch::nn::Linear(64, 128), torch::nn::Tanh(),
                            torch::nn::Linear(128, 8));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  syncopate::DistributedOptions options;
  options.scheme = "gossip";
  options.batch_size = batch_size;
  syncopate::DistributedOptimizer optimizer(job, *net, sgd, options);
  torch::manual_seed(2);
  const torch::Tensor test = torch::randn({512, 64});  // the same on each worker
  torch::manual_seed(100 + job.rank());                // other samples on each worker
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor x = torch::randn({batch_size, 64});
    optimizer.zero_grad();
    torch::mse_loss(net->forward(x), teacher(x)).backward();
    optimizer.step(batch_size);
  }
  optimizer.finish();
  const torch::NoGradGuard no_grad;
  const double loss = torch::mse_loss(net->forward(test), teacher(test)).item<double>();
  std::printf("worker %u of %u: loss %.4f\n", job.rank(), job.size(), loss);
}

/// Errors: invalid_argument.
int number_in(const std::string& text, const char* name) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) {
    throw std::invalid_argument(std::string(name) + ": expected a whole number from 0 on, found " +
                                text);
  }
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? number_in(argv[1], "STEPS") : 1000);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "your_own_scheme: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "your_own_scheme: %s\n", error.what());
    return 1;
  }
  return 0;
}
