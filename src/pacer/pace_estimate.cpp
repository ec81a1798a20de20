#include "pacer/pace_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

constexpr double newest = 0.3;
constexpr std::size_t window = 5;
constexpr double outlying = 2;
constexpr double deviations_per_distance = 1.25;
constexpr Duration least_margin = std::chrono::milliseconds(1);

}  // namespace

void PaceEstimate::observe(std::uint32_t samples, Duration took) {
  if (samples == 0) {
    return;
  }
  const double seconds = to_seconds(took) / samples;
  if (is_outlier(seconds)) {
    if (!std::exchange(last_ignored_, true)) {
      return;
    }
    recent_.clear();
  }
  last_ignored_ = false;
  follow(seconds);
}

Duration PaceEstimate::margin(std::uint32_t samples) const {
  const double deviation = deviations_per_distance * spread_ * mean_ * samples;
  return std::max(from_seconds(2 * deviation), least_margin);
}

PaceEstimate::State PaceEstimate::state() const {
  return {.mean = mean_,
          .spread = spread_,
          .recent = {recent_.begin(), recent_.end()},
          .last_ignored = last_ignored_};
}

void PaceEstimate::load(const State& state) {
  mean_ = state.mean;
  spread_ = state.spread;
  recent_.assign(state.recent.begin(), state.recent.end());
  last_ignored_ = state.last_ignored;
}

double PaceEstimate::median() const {
  std::vector<double> sorted(recent_.begin(), recent_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

bool PaceEstimate::is_outlier(std::uint32_t samples, Duration took) const {
  return samples > 0 && is_outlier(to_seconds(took) / samples);
}

bool PaceEstimate::is_outlier(double sample_seconds) const {
  if (recent_.empty()) {
    return false;
  }
  const double usual = median();
  return sample_seconds > outlying * usual || sample_seconds * outlying < usual;
}

void PaceEstimate::follow(double seconds) {
  if (recent_.empty()) {
    mean_ = seconds;
  } else {
    if (mean_ > 0) {
      spread_ += newest * (std::abs(seconds - mean_) / mean_ - spread_);
    }
    mean_ += newest * (seconds - mean_);
  }
  recent_.push_back(seconds);
  if (recent_.size() > window) {
    recent_.pop_front();
  }
}

namespace {

constexpr double usable_budget = 0.95;
constexpr double usable_cores = 0.9;

/// The share of a core that a device's emulation takes.
double load(const PaceCost& cost) {
  return cost.cpu_seconds / cost.budget_seconds;
}

/// Rounds up to two digits: costs are measured, and differ a little from one start to the next.
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
