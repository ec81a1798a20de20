#include "job/spec/schedule.hpp"

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

double resolved_rate(const TrainConfig& config) {
  if (!config.learning_rate) {
    throw InternalError("a schedule was made before the learning rate was resolved");
  }
  return *config.learning_rate;
}

}  // namespace

Schedule::Schedule(const TrainConfig& config)
    : shape_(config.schedule),
      base_(resolved_rate(config)),
      epochs_(config.epochs),
      warm_up_(config.warm_up),
      step_(config.schedule_step),
      factor_(config.schedule_factor) {
  require(base_ > 0 && std::isfinite(base_), "--learning-rate", base_, "a number above 0");
  require(epochs_ > 0, "--epochs", epochs_, "a number above 0");
  require(warm_up_ >= 0 && warm_up_ <= epochs_, "--warm-up", warm_up_,
          fmt::format("from 0 to --epochs {}", epochs_));
  if (shape_ == ScheduleShape::step) {
    require(step_ > 0, "--schedule-step", step_, "a number of epochs above 0");
    require(factor_ > 0 && factor_ <= 1, "--schedule-factor", factor_, "above 0 and at most 1");
  }
  if (shape_ == ScheduleShape::cosine) {
    require(factor_ >= 0 && factor_ <= 1, "--schedule-factor", factor_, "from 0 to 1");
  }
}

double Schedule::rate(double epoch) const {
  if (epoch < warm_up_) {
    return base_ * epoch / warm_up_;
  }
  const double since = epoch - warm_up_;
  switch (shape_) {
    case ScheduleShape::constant: return base_;
    case ScheduleShape::step: return base_ * std::pow(factor_, std::floor(since / step_));
    case ScheduleShape::cosine: {
      const double length = epochs_ - warm_up_;
      const double progress = since < length ? since / length : 1;
      const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
      return base_ * (factor_ + (1 - factor_) * wave);
    }
  }
  return base_;
}

}  // namespace syncopate
