#include "pacer/pace_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace syncopate {
namespace {

constexpr double usable_budget = 0.95;
constexpr double usable_cores = 0.9;

/// The share of a core that a device's emulation takes.
double load(const PaceCost& cost) {
  return cost.cpu_seconds / cost.budget_seconds;
}

/// To two digits, upwards: costs are measured, and differ a little from one start to the next.
double rounded_up(double scale) {
  const double unit = std::pow(10.0, std::floor(std::log10(scale)) - 1);
  return std::ceil(scale / unit) * unit;
}

}  // namespace

std::optional<std::string> pace_objection(std::span<const PaceCost> costs, unsigned cores,
                                          double time_scale) {
  if (costs.empty()) {
    return std::nullopt;
  }
  double sum = 0;
  for (const PaceCost& cost : costs) {
    sum += load(cost);
  }
  const PaceCost& tightest = *std::ranges::max_element(costs, {}, load);
  const double stretch = std::max(load(tightest) / usable_budget, sum / (usable_cores * cores));
  if (stretch <= 1) {
    return std::nullopt;
  }
  return fmt::format(
      "this machine cannot pace the emulated cluster: its {} devices need {:.2f} of {} cores (at "
      "most {:.2f}); {} needs {:.3g} s of CPU for a mini-batch of {:.3g} s (at most {:.3g}); use "
      "--time-scale {:g} or more, fewer devices or a smaller network",
      costs.size(), sum, cores, usable_cores * cores, tightest.device, tightest.cpu_seconds,
      tightest.budget_seconds, usable_budget * tightest.budget_seconds,
      rounded_up(time_scale * stretch));
}

}  // namespace syncopate
