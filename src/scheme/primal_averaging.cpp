#include "scheme/primal_averaging.hpp"

#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {

PrimalAveraging::PrimalAveraging(const Options& options, std::size_t values)
    : options_(options),
      memory_({.rule = "gpa", .slots = {"fast_minus_average"}}, values),
      values_(values) {}

/// With z' = z + rate Δ: v' = z' − x' = μ_x (v + rate Δ), and y' = z' − μ_y v'.
void PrimalAveraging::apply(std::size_t first, std::span<float> values,
                            std::span<const float> gradient, float scale) {
  const std::span<float> fast = memory_.part(0, {.first = first, .count = values.size()});
  const double change = -rate_ * scale;  // times the gradient it is rate Δ
  add_scaled(values, options_.point * (1 - options_.average), fast);
  add_scaled(values, change * (1 - options_.point * options_.average), gradient);
  syncopate::scale(fast, static_cast<float>(options_.average));
  add_scaled(fast, change * options_.average, gradient);
}

/// x = y − (1 − μ_y) v.
void PrimalAveraging::average(std::span<float> values) const {
  add_scaled(values, options_.point - 1, memory_.part(0, {.first = 0, .count = values_}));
}

}  // namespace syncopate
