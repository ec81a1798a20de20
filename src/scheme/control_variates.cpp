#include "scheme/control_variates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

constexpr const char* own_name = "control";
constexpr const char* correction_name = "control_correction";
constexpr const char* seen_name = "control_samples";

}  // namespace

void ControlVariates::correct(std::span<float> gradient, std::uint32_t samples) {
  if (samples == 0) {
    return;
  }
  round_sum_.resize(gradient.size());
  add_scaled(round_sum_, samples, gradient);
  round_samples_ += samples;
  if (!correction_.empty()) {
    add(gradient, correction_);
  }
}

void ControlVariates::contribute(std::span<float> mine) {
  mine_.resize(mine.size());
  if (round_samples_ > 0) {
    seen_ = std::min<std::uint64_t>(seen_ + round_samples_, memory_);
    const auto n = static_cast<double>(round_samples_);
    const double share = n / std::max<double>(n, static_cast<double>(seen_));
    scale(mine_, static_cast<float>(1 - share));
    add_scaled(mine_, share / n, round_sum_);
    std::fill(round_sum_.begin(), round_sum_.end(), 0.0F);
    round_samples_ = 0;
  }
  std::copy(mine_.begin(), mine_.end(), mine.begin());
}

void ControlVariates::on_mean(std::span<const float> mean) {
  own_ = mine_;
  correction_.assign(mean.begin(), mean.end());
  add_scaled(correction_, -1, own_);
}

OptimizerState ControlVariates::state() const {
  return {.slots = {{own_name, own_}, {correction_name, correction_}},
          .counters = {{seen_name, static_cast<std::int64_t>(seen_)}}};
}

void ControlVariates::load(const OptimizerState& state) {
  const auto own = state.slots.find(own_name);
  const auto correction = state.slots.find(correction_name);
  const auto seen = state.counters.find(seen_name);
  if (own == state.slots.end() || correction == state.slots.end() || seen == state.counters.end() ||
      seen->second < 0 || own->second.size() != correction->second.size()) {
    throw DataError(fmt::format("expected the state of control variates: {}, {} and {}", own_name,
                                correction_name, seen_name));
  }
  own_ = own->second;
  mine_ = own_;
  correction_ = correction->second;
  seen_ = static_cast<std::uint64_t>(seen->second);
}

}  // namespace syncopate
