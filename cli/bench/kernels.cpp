#include <fmt/format.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_processes.hpp"
#include "cli/bench/benchmarks.hpp"
#include "cli/bench/timing.hpp"
#include "kernels/reduce.hpp"
#include "optim/update_rule.hpp"

namespace syncopate::cli {
namespace {

constexpr double learning_rate = 1e-3;

/// One line of the table.
Case case_of(const std::string& kernel, const std::string& from, std::size_t values, int passes,
             std::function<void()> pass) {
  return {.names = {{"kernel", kernel}, {"target", kernel_target()}, {"from", from}},
          .bytes = values * sizeof(float),
          .passes = passes,
          .pass = std::move(pass)};
}

/// The vectors that the cases work on.
struct Vectors {
  std::vector<float> into;
  std::vector<float> from;
};

void add_reduce_kernels(std::vector<Case>& cases, Vectors& vectors, std::size_t values,
                        const std::string& level) {
  const auto into = std::span(vectors.into).first(values);
  const std::span<const float> from = std::span(vectors.from).first(values);
  const int passes = level == "L2" ? cached_passes : 1;
  const auto with = [&](const std::string& kernel, std::function<void()> pass) {
    cases.push_back(case_of(kernel, level, values, passes, std::move(pass)));
  };
  // The sequence keeps the values away from infinity, and from denormal numbers, which are slow.
  with("add", [into, from] { add(into, from); });
  with("scale_and_add", [into, from] { scale_and_add(into, 0.5F, from); });
  with("scale", [into] { scale(into, -1.0F); });
}

void add_update_rules(std::vector<Case>& cases, Vectors& vectors) {
  const std::span<const float> gradient = vectors.from;
  for (const std::string_view name : update_rule_names()) {
    const std::string rule(name);
    // Each rule has its own parameters, as on a server.
    const auto params = std::make_shared<std::vector<float>>(vectors.from);
    const std::shared_ptr<UpdateRule> update = make_update_rule({.name = rule}, params->size());
    cases.push_back(case_of("update " + rule, "memory", params->size(), 1, [=] {
      update->begin_step(learning_rate);
      update->apply(0, *params, gradient, 1);
    }));
  }
}

void measure_kernels(std::size_t values, const Effort& effort, BenchReporter& reporter) {
  Vectors vectors{std::vector<float>(std::max(values, cached_values), 1e-3F),
                  std::vector<float>(std::max(values, cached_values), 1e-3F)};
  std::vector<Case> cases;
  add_reduce_kernels(cases, vectors, cached_values, "L2");
  add_reduce_kernels(cases, vectors, values, "memory");
  add_update_rules(cases, vectors);
  reporter.begins(fmt::format("{} kernels on one core", cases.size()));
  take_turns(cases, effort);
  for (const Case& done : cases) {
    reporter.result(figures(done));
  }
}

}  // namespace

int bench_kernels(const BenchCommand& command) {
  return run_processes({"kernels"}, command.form, [&](std::uint32_t, BenchReporter& reporter) {
    for (const std::size_t bytes : command.bytes) {
      measure_kernels(bytes / sizeof(float), command.effort, reporter);
    }
  });
}

}  // namespace syncopate::cli
