// Images per second of one replica that trains alone, to set beside torch_local.py.
//
//     torch_local --network lenet5 --seconds 5 [--json]
//
// The same batch again and again, so that nothing but forward, backward and update is timed.
// OPENBLAS_CORETYPE, OMP_NUM_THREADS and OPENBLAS_NUM_THREADS are to be set alike for both programs
// before they start.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/random.hpp"
#include "torch/factory.hpp"

namespace syncopate {
namespace {

struct Options {
  std::string network = "lenet5";
  double seconds = 5;
  std::uint32_t batch_size = 64;
  std::uint32_t threads = 1;
  bool json = false;
};

constexpr std::uint32_t warm_up_steps = 5;

Batch synthetic_batch(std::uint32_t samples) {
  Random random(1);
  Batch batch;
  batch.shape = {1, 28, 28};
  for (std::size_t i = 0; i < samples * batch.shape.values(); ++i) {
    batch.features.push_back(static_cast<float>(random.normal()));
  }
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(10)));
  }
  return batch;
}

double images_per_second(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const Batch batch = synthetic_batch(options.batch_size);
  const auto replica =
      torch_backend::make_replica({.name = options.network, .input = batch.shape},
                                  {.name = "momentum", .learning_rate = 0.01}, "cpu");
  replica->initialise(1);
  const auto step = [&] {
    replica->backward(batch);
    replica->local_step();
  };
  for (std::uint32_t i = 0; i < warm_up_steps; ++i) step();
  std::uint64_t steps = 0;
  std::chrono::duration<double> elapsed{};
  for (const auto start = Clock::now(); elapsed.count() < options.seconds; ++steps) {
    step();
    elapsed = Clock::now() - start;
  }
  return static_cast<double>(steps * options.batch_size) / elapsed.count();
}

/// Unlike getrusage's, this figure does not include the program that started this one.
std::uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void report(const Options& options, double speed) {
  const nlohmann::ordered_json result{
      {"program", "syncopate"},           {"network", options.network},
      {"batch_size", options.batch_size}, {"threads", options.threads},
      {"images_per_second", speed},       {"peak_resident_bytes", peak_resident_bytes()},
  };
  if (options.json) {
    fmt::print("{}\n", result.dump());
  } else {
    fmt::print("{}: {:.0f} images/s, at most {:.0f} MiB resident\n", options.network, speed,
               static_cast<double>(peak_resident_bytes()) / (1 << 20));
  }
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  syncopate::Options options;
  CLI::App app("Images per second of one replica that trains alone");
  app.add_option("--network", options.network);
  app.add_option("--seconds", options.seconds);
  app.add_option("--batch-size", options.batch_size);
  app.add_option("--threads", options.threads);
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  syncopate::torch_backend::set_threads(options.threads);
  syncopate::report(options, syncopate::images_per_second(options));
}
