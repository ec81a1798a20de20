// Runs the loop of examples/dist_mnist over random images, for run.py. It measures images per
// second of all workers or, in a single worker, the time of a step with and without the wrapped
// optimizer.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <syncopate/torch.hpp>
#include <vector>

namespace {

constexpr std::int64_t batch_size = 64;  // per worker
constexpr int warm_up_steps = 5;
constexpr int turn_steps = 50;  // steps of one loop before the turn of the other

struct Net : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(first(x), 2));
    x = torch::relu(torch::max_pool2d(second(x), 2));
    return output(torch::relu(hidden(x.flatten(1))));
  }

  torch::nn::Conv2d first{register_module("first", torch::nn::Conv2d(1, 10, 5))};
  torch::nn::Conv2d second{register_module("second", torch::nn::Conv2d(10, 20, 5))};
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(320, 50))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(50, 10))};
};

struct Loop {
  torch::Tensor images = torch::randn({batch_size, 1, 28, 28});
  torch::Tensor labels = torch::randint(10, {batch_size}, torch::kInt64);
  Net net = {};
  torch::optim::SGD sgd{net.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)};

  void backward() { torch::nn::functional::cross_entropy(net.forward(images), labels).backward(); }
};

double seconds_of(int steps, const std::function<void()>& step) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    step();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const nlohmann::json& line) {
  std::cout << line.dump() << std::endl;
}

void run_with_others(double seconds) {
  auto job = syncopate::init();
  torch::manual_seed(job.rank());
  Loop loop;
  syncopate::DistributedOptimizer optimizer(job, loop.net, loop.sgd, {.batch_size = batch_size});
  const auto step = [&] {
    optimizer.zero_grad();
    loop.backward();
    optimizer.step(batch_size);
  };
  step();
  print({{"event", "first_step"}, {"rank", job.rank()}});
  // All workers take the number of steps that fills `seconds` on worker 0.
  std::vector<std::int64_t> steps{std::max<std::int64_t>(
      1, static_cast<std::int64_t>(seconds * warm_up_steps / seconds_of(warm_up_steps, step)))};
  job.broadcast(steps);
  job.barrier();
  const double took = seconds_of(static_cast<int>(steps.front()), step);
  if (job.rank() == 0) {
    print({{"images_per_second",
            static_cast<double>(steps.front() * batch_size * job.size()) / took}});
  }
}

/// Runs the two loops in turn, so that a slow phase of the machine affects both.
void run_alone(double seconds) {
  auto job = syncopate::init();
  torch::manual_seed(1);
  Loop plain, wrapped;
  syncopate::DistributedOptimizer optimizer(job, wrapped.net, wrapped.sgd,
                                            {.batch_size = batch_size});
  const auto plain_step = [&] {
    plain.net.zero_grad();
    plain.backward();
    plain.sgd.step();
  };
  const auto wrapped_step = [&] {
    optimizer.zero_grad();
    wrapped.backward();
    optimizer.step(batch_size);
  };
  seconds_of(warm_up_steps, plain_step);
  seconds_of(warm_up_steps, wrapped_step);
  std::vector<double> of_plain, of_wrapped;
  for (double spent = 0; spent < seconds; spent += of_plain.back() + of_wrapped.back()) {
    of_plain.push_back(seconds_of(turn_steps, plain_step));
    of_wrapped.push_back(seconds_of(turn_steps, wrapped_step));
  }
  print({{"plain_step_seconds", median(of_plain) / turn_steps},
         {"wrapped_step_seconds", median(of_wrapped) / turn_steps}});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The loop of a program of its own, measured");
  double seconds = 5;
  bool alone = false;
  app.add_option("--seconds", seconds);
  app.add_flag("--alone", alone, "beside the same loop without the wrapper");
  CLI11_PARSE(app, argc, argv);
  torch::set_num_threads(1);
  try {
    if (alone) {
      run_alone(seconds);
    } else {
      run_with_others(seconds);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loop_speed: %s\n", error.what());
    return 1;
  }
  return 0;
}
