// Shows what ESync does with devices of unequal speed: each worker takes as many steps as fit into
// a round, and all end with the same parameters. Usage: esync_unequal [SECONDS]
#include <torch/torch.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <syncopate/torch.hpp>
#include <system_error>

namespace {

constexpr std::int64_t batch_size = 32;  // of one worker

/// The network to imitate: from 64 values to 8.
torch::Tensor teacher(const torch::Tensor& x) {
  static const torch::Tensor weights = [] {
    torch::manual_seed(1);
    return torch::randn({64, 8});
  }();
  return torch::tanh(x.matmul(weights));
}

void train(double seconds) {
  auto job = syncopate::init();
  torch::nn::Sequential net(torch::nn::Linear(64, 128), torch::nn::Tanh(),
                            torch::nn::Linear(128, 8));
  job.broadcast_parameters(*net);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  syncopate::DistributedOptimizer optimizer(job, *net, sgd,
                                            {"esync", {}, static_cast<std::uint32_t>(batch_size)});
  torch::manual_seed(2);
  const torch::Tensor test = torch::randn({512, 64});  // the same on each worker
  torch::manual_seed(100 + job.rank());                // other samples on each worker

  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::int64_t steps = 0;
  for (; Clock::now() < end; ++steps) {
    const torch::Tensor x = torch::randn({batch_size, 64});
    optimizer.zero_grad();
    torch::mse_loss(net->forward(x), teacher(x)).backward();
    optimizer.step(batch_size);
  }
  optimizer.finish();

  const torch::NoGradGuard no_grad;
  const double loss = torch::mse_loss(net->forward(test), teacher(test)).item<double>();
  const auto all = job.allgather(torch::tensor({static_cast<double>(steps)}));
  std::printf("worker %u: %lld steps, loss %.4f\n", job.rank(), static_cast<long long>(steps),
              loss);
  if (job.rank() == 0) {
    std::printf("steps of all workers:");
    for (const torch::Tensor& of_worker : all) {
      std::printf(" %.0f", of_worker.item<double>());
    }
    std::printf("\n");
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
    train(argc > 1 ? number_in(argv[1], "SECONDS") : 10);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "esync_unequal: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "esync_unequal: %s\n", error.what());
    return 1;
  }
  return 0;
}
