#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "cli/bench/bench_processes.hpp"
#include "cli/bench/benchmarks.hpp"
#include "cli/bench/random_batch.hpp"
#include "cli/bench/timing.hpp"
#include "cli/compute/compute.hpp"
#include "config/option_values.hpp"
#include "torch/factory.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

constexpr int warm_up_steps = 5;
constexpr std::uint32_t usual_side = 28;  ///< of the images of MNIST

/// Seconds of each step.
struct Parts {
  std::vector<double> backward;
  std::vector<double> update;
  std::vector<double> step;
};

Parts train(Replica& replica, const Batch& batch, const Effort& effort) {
  const TimePoint begun = steady_now();
  Parts parts;
  const auto goes_on = [&] {
    const std::size_t done = parts.step.size();
    return effort.rounds
               ? done < *effort.rounds
               : done < fewest_rounds || to_seconds(steady_now() - begun) < effort.seconds;
  };
  while (goes_on()) {
    const TimePoint start = steady_now();
    replica.backward(batch);
    const TimePoint middle = steady_now();
    replica.local_step();
    const TimePoint end = steady_now();
    parts.backward.push_back(to_seconds(middle - start));
    parts.update.push_back(to_seconds(end - middle));
    parts.step.push_back(to_seconds(end - start));
  }
  return parts;
}

/// A replica that is ready to train, and a batch for it.
struct Ready {
  Batch batch;
  std::unique_ptr<Replica> replica;
};

/// Errors: ConfigError, also for images that the network cannot take.
Ready get_ready(const StepSetting& setting) {
  const NetworkChoice network = NetworkChoice::of(setting.network);
  const std::uint32_t least = network->smallest_side;
  const std::uint32_t side = setting.image_size.value_or(std::max(usual_side, least));
  if (const std::string refusal = size_refusal(*network, side, side); !refusal.empty()) {
    throw ConfigError(fmt::format("{}; choose --image-size {} or more", refusal, least));
  }
  Ready ready{.batch = random_batch(setting.samples, side, Random(1)), .replica = {}};
  torch_backend::set_threads(setting.threads);
  ready.replica = torch_backend::make_replica(
      {.name = setting.network, .input = ready.batch.shape, .classes = random_batch_classes},
      {.optimizer = Optimizer::momentum, .learning_rate = 0.01}, setting.device, setting.precision);
  ready.replica->initialise(1);
  train(*ready.replica, ready.batch, {.rounds = warm_up_steps});
  return ready;
}

double samples_per_second(std::uint32_t samples, const std::vector<double>& seconds) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return static_cast<double>(samples * seconds.size()) / all;
}

/// Unlike getrusage's, this figure does not include the program that this process was forked from.
std::uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoull(line.substr(6)) * 1024;
    }
  }
  return 0;
}

void measure(const BenchCommand& command, BenchReporter& reporter) {
  reporter.begins(fmt::format("steps of {}, {} samples", command.network, command.batch_size));
  const Ready ready = get_ready({.network = command.network,
                                 .device = "cpu",
                                 .samples = command.batch_size,
                                 .threads = command.threads,
                                 .image_size = command.image_size,
                                 .precision = command.precision});
  const Parts parts = train(*ready.replica, ready.batch, command.effort);
  const auto add_part = [&](const std::string& part, const std::vector<double>& seconds) {
    nlohmann::ordered_json result{{"network", command.network},
                                  {"part", part},
                                  {"threads", command.threads},
                                  {"samples", command.batch_size},
                                  {"image_size", ready.batch.shape.height},
                                  {"precision", name_of_value(command.precision)}};
    add_times(result, seconds);
    result["samples_per_second"] = samples_per_second(command.batch_size, seconds);
    result["peak_resident_bytes"] = peak_resident_bytes();
    result["rounds"] = seconds.size();
    reporter.result(result);
  };
  add_part("backward", parts.backward);
  add_part("update", parts.update);
  add_part("step", parts.step);
}

}  // namespace

std::vector<double> step_seconds(const StepSetting& setting) {
  const Ready ready = get_ready(setting);
  return train(*ready.replica, ready.batch, setting.effort).step;
}

double training_speed(const StepSetting& setting) {
  return samples_per_second(setting.samples, step_seconds(setting));
}

int bench_step(const BenchCommand& command) {
  return run_processes({"replica"}, command.form,
                       [&](std::uint32_t, BenchReporter& reporter) { measure(command, reporter); });
}

int bench_here(const BenchCommand& command) {
  const std::map<std::string, int (*)(const BenchCommand&)> benchmarks{
      {"allreduce", bench_allreduce}, {"push-pull", bench_push_pull}, {"latency", bench_latency},
      {"kernels", bench_kernels},     {"codecs", bench_codecs},       {"step", bench_step}};
  const auto found = benchmarks.find(command.benchmark);
  if (found == benchmarks.end()) {
    throw InternalError("no benchmark is called " + command.benchmark);
  }
  return found->second(command);
}

}  // namespace syncopate::cli
