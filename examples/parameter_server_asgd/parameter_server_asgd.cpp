// Asynchronous SGD over a parameter server, which takes the steps of RMSprop and drops the rate
// from time to time. Usage: parameter_server_asgd [EPOCHS]
#include <torch/torch.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <syncopate/torch.hpp>
#include <system_error>

namespace {

constexpr std::size_t batch_size = 64;  // of all workers together

/// Points of a ring in ten sectors, with the number of the sector as label.
struct Sectors : torch::data::Dataset<Sectors> {
  explicit Sectors(std::int64_t seed) {
    torch::manual_seed(seed);
    const torch::Tensor angle = torch::rand({4096}) * (2 * M_PI);
    const torch::Tensor radius = torch::rand({4096}) + 0.5;
    points = torch::stack({radius * angle.cos(), radius * angle.sin()}, 1);
    labels = (angle * (10 / (2 * M_PI))).to(torch::kInt64).clamp_max(9);
  }

  torch::data::Example<> get(std::size_t index) override {
    const auto at = static_cast<std::int64_t>(index);
    return {points[at], labels[at]};
  }
  torch::optional<std::size_t> size() const override { return 4096; }

  torch::Tensor points, labels;
};

void train(int epochs) {
  // The server keeps the model, so the schedule is the job's: it drops the rate to a tenth every
  // five epochs of the samples that have reached the server.
  auto job = syncopate::init(
      {"asgd", {{"schedule", "step"}, {"schedule-step", "5"}, {"schedule-factor", "0.1"}}, {}});
  auto loader =
      job.partition_dataset(Sectors(1).map(torch::data::transforms::Stack<>()), batch_size);

  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Linear(64, 10));
  job.broadcast_parameters(*net);
  torch::optim::RMSprop rmsprop(net->parameters(), torch::optim::RMSpropOptions(2e-3).alpha(0.9));
  {
    syncopate::DistributedOptimizer optimizer(job, *net, rmsprop);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (auto& batch : *loader) {
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(net->forward(batch.data), batch.target).backward();
        optimizer.step(batch.target.size(0));
      }
    }
  }

  const torch::NoGradGuard no_grad;
  const Sectors test(2);
  const torch::Tensor right = net->forward(test.points).argmax(1).eq(test.labels);
  std::printf("worker %u of %u: accuracy %.4f\n", job.rank(), job.size(),
              right.to(torch::kFloat64).mean().item<double>());
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
    train(argc > 1 ? number_in(argv[1], "EPOCHS") : 15);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "parameter_server_asgd: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parameter_server_asgd: %s\n", error.what());
    return 1;
  }
  return 0;
}
