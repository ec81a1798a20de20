#include "optim/delay_compensation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.hpp"
#include "kernels/optimizer_steps.hpp"

namespace syncopate {
namespace {

constexpr double smoothing = 0.95;
constexpr double epsilon = 1e-7;

RuleMemory::Form form_of(const DelayCompensation::Options& options) {
  RuleMemory::Form form{.rule = "delay compensation"};
  if (options.adaptive) form.slots = {"gradient_mean_square"};
  return form;
}

}  // namespace

DelayCompensation::DelayCompensation(const Options& options, std::size_t values)
    : options_(options), memory_(form_of(options), values) {
  if (!(options.lambda >= 0 && options.lambda < HUGE_VAL)) {
    throw ConfigError(
        fmt::format("lambda {} of delay compensation: expected a number from 0", options.lambda));
  }
}

void DelayCompensation::apply(std::size_t first, std::span<float> gradient,
                              std::span<const float> values, std::span<const float> backup) {
  const DelayedBlock block{.gradient = gradient, .values = values, .backup = backup};
  if (options_.adaptive) {
    compensate_delay_adaptively(
        block, memory_.part(0, {first, gradient.size()}),
        {.lambda = options_.lambda, .smoothing = smoothing, .epsilon = epsilon});
  } else if (options_.lambda != 0) {
    compensate_delay(block, options_.lambda);
  }
}

}  // namespace syncopate
