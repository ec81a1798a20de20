// How fast a server steps: GB of parameters a second, on one core, by update rule.
//
// Workload: one step of a rule over all parameters in one block, as many as ResNet-18 has unless told
// otherwise. Reported: bytes of the parameters alone, whatever else a rule reads and writes, by the
// median time of a step. Rules take turns, so that what slows the machine down hits all of them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "server/update_rule.hpp"

namespace {

using namespace syncopate;

struct Load {
  std::size_t values = 11'175'370;
  std::uint32_t repetitions = 25;
};

constexpr double learning_rate = 1e-3;

/// One rule with parameters of its own.
struct Run {
  std::string rule;
  std::unique_ptr<UpdateRule> update;
  std::vector<float> values;
  std::vector<double> seconds = {};
};

std::vector<float> random_values(std::size_t count) {
  Random random(1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

/// Seconds of a step.
double step(Run& run, const std::vector<float>& gradient) {
  const auto start = std::chrono::steady_clock::now();
  run.update->begin_step(learning_rate);
  run.update->apply(0, run.values, gradient, 1);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Run> measure(const Load& load) {
  const std::vector<float> gradient = random_values(load.values);
  std::vector<Run> runs;
  for (const std::string_view name : update_rule_names()) {
    const std::string rule(name);
    runs.push_back({rule, make_update_rule({.name = rule}, load.values), gradient});
  }
  for (Run& run : runs) step(run, gradient);  // touches all memory
  for (std::uint32_t i = 0; i < load.repetitions; ++i) {
    for (Run& run : runs) run.seconds.push_back(step(run, gradient));
  }
  return runs;
}

double gigabytes_per_second(const Load& load, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return 1e-9 * static_cast<double>(load.values * sizeof(float)) / seconds[seconds.size() / 2];
}

void report(const Load& load, const std::vector<Run>& runs, bool json) {
  nlohmann::ordered_json rates;
  for (const Run& run : runs) rates[run.rule] = gigabytes_per_second(load, run.seconds);
  if (json) {
    const nlohmann::ordered_json result{{"benchmark", "update rules"},
                                        {"values", load.values},
                                        {"repetitions", load.repetitions},
                                        {"gigabytes_per_second", rates}};
    fmt::print("{}\n", result.dump());
    return;
  }
  for (const auto& [rule, rate] : rates.items()) {
    fmt::print("{:9} {:6.2f} GB/s of parameters\n", rule, rate.get<double>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  bool json = false;
  CLI::App app("Measures update rules: GB of parameters a second, on one core");
  app.add_option("--values", load.values, "Parameters")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--repetitions", load.repetitions, "Steps of each rule")
      ->check(CLI::Range(1U, 100'000U));
  app.add_flag("--json", json, "Print one line of JSON");
  CLI11_PARSE(app, argc, argv);
  report(load, measure(load), json);
}
