#include "scheme/primal_averaging.hpp"

#include <algorithm>

#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {

PrimalAveraging::PrimalAveraging(const Options& options, std::size_t values)
    : options_(options),
      memory_({.rule = "gpa", .slots = {"fast_minus_average"}}, values),
      values_(values),
      average_(options.average.value_or(0)) {}

void PrimalAveraging::begin_round(std::uint64_t round) {
  constexpr double decay = 8;
  const double share = (decay + 1) / (static_cast<double>(round) + decay);
  average_ = options_.average.value_or(1 - std::min(1.0, share));
}

/// With z' = z + rate Δ: v' = z' − x' = μ_x (v + rate Δ), and y' = z' − μ_y v'.
void PrimalAveraging::apply(std::size_t first, std::span<float> values,
                            std::span<const float> gradient, float scale) {
  const std::span<float> fast = memory_.part(0, {.first = first, .count = values.size()});
  const double change = -rate_ * scale;  // times the gradient it is rate Δ
  add_scaled(values, options_.point * (1 - average_), fast);
  add_scaled(values, change * (1 - options_.point * average_), gradient);
  syncopate::scale(fast, static_cast<float>(average_));
  add_scaled(fast, change * average_, gradient);
}

/// x = y − (1 − μ_y) v.
void PrimalAveraging::average(std::span<float> values) const {
  add_scaled(values, options_.point - 1, memory_.part(0, {.first = 0, .count = values_}));
}

}  // namespace syncopate
