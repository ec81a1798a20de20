#include "optim/schedule.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// Also refuses NaN, for which no condition holds.
void require(bool holds, const char* option, double found, const std::string& expected) {
  if (!holds) {
    throw ConfigError(fmt::format("{} {}: expected {}", option, found, expected));
  }
}

}  // namespace

Schedule::Schedule(const Options& options) : options_(options) {
  const auto& [shape, rate, epochs, warm_up, step_epochs, factor] = options_;
  require(rate > 0 && std::isfinite(rate), "--learning-rate", rate, "a number above 0");
  require(epochs > 0, "--epochs", epochs, "a number above 0");
  require(warm_up >= 0 && warm_up <= epochs, "--warm-up", warm_up,
          fmt::format("from 0 to --epochs {}", epochs));
  if (shape == ScheduleShape::step) {
    require(step_epochs > 0, "--schedule-step", step_epochs, "a number of epochs above 0");
    require(factor > 0 && factor <= 1, "--schedule-factor", factor, "above 0 and at most 1");
  }
  if (shape == ScheduleShape::cosine) {
    require(factor >= 0 && factor <= 1, "--schedule-factor", factor, "from 0 to 1");
  }
}

double Schedule::rate(double epoch) const {
  const auto& [shape, base, epochs, warm_up, step_epochs, factor] = options_;
  if (epoch < warm_up) {
    return base * epoch / warm_up;
  }
  const double since = epoch - warm_up;
  switch (shape) {
    case ScheduleShape::constant: return base;
    case ScheduleShape::step: return base * std::pow(factor, std::floor(since / step_epochs));
    case ScheduleShape::cosine: {
      const double length = epochs - warm_up;
      const double progress = since < length ? since / length : 1;
      const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
      return base * (factor + (1 - factor) * wave);
    }
  }
  return base;
}

}  // namespace syncopate
