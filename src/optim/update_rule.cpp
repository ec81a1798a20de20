#include "optim/update_rule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/errors.hpp"
#include "kernels/optimizer_steps.hpp"
#include "optim/rule_state.hpp"

namespace syncopate {
namespace {

constexpr double adagrad_epsilon = 1e-10;
constexpr double usual_epsilon = 1e-8;

/// The common part of all rules: a memory, and the rate of the step under way.
class Rule : public UpdateRule {
 public:
  Rule(RuleMemory::Form form, const RuleSpec& spec, std::size_t values)
      : spec_(spec), memory_(std::move(form), values) {}

  void begin_step(double learning_rate) final {
    rate_ = learning_rate;
    memory_.begin_step();
  }
  void apply(std::size_t first, std::span<float> values, std::span<const float> gradient,
             float scale) final {
    step({.values = values,
          .gradient = gradient,
          .scale = scale,
          .decay = static_cast<float>(spec_.weight_decay)},
         {.first = first, .count = values.size()});
  }
  OptimizerState state() const final { return memory_.state(); }
  void load(const OptimizerState& state) final { memory_.load(state); }

 protected:
  virtual void step(const StepBlock& block, ValueRange range) = 0;

  const RuleSpec& spec() const { return spec_; }
  RuleMemory& memory() { return memory_; }
  double rate() const { return rate_; }

 private:
  RuleSpec spec_;
  RuleMemory memory_;
  double rate_ = 0;
};

class Sgd final : public Rule {
 public:
  Sgd(const RuleSpec& spec, std::size_t values) : Rule({.rule = spec.name}, spec, values) {}

 private:
  void step(const StepBlock& block, ValueRange) override { sgd_step(block, rate()); }
};

/// Heavy ball and Nesterov's. The velocity begins at 0, so it is the gradient at the first step.
class Momentum final : public Rule {
 public:
  Momentum(const RuleSpec& spec, std::size_t values)
      : Rule({.rule = spec.name, .slots = {"momentum_buffer"}}, spec, values) {}

 private:
  void step(const StepBlock& block, ValueRange range) override {
    momentum_step(
        block, memory().part(0, range),
        {.rate = rate(), .momentum = spec().momentum, .nesterov = spec().name == "nesterov"});
  }
};

class Adagrad final : public Rule {
 public:
  Adagrad(const RuleSpec& spec, std::size_t values)
      : Rule({.rule = spec.name, .slots = {"sum"}, .counts_steps = true}, spec, values) {}

 private:
  void step(const StepBlock& block, ValueRange range) override {
    adagrad_step(block, memory().part(0, range),
                 {.rate = rate(), .epsilon = spec().epsilon.value_or(adagrad_epsilon)});
  }
};

class Rmsprop final : public Rule {
 public:
  Rmsprop(const RuleSpec& spec, std::size_t values)
      : Rule({.rule = spec.name, .slots = {"square_avg"}, .counts_steps = true}, spec, values) {}

 private:
  void step(const StepBlock& block, ValueRange range) override {
    rmsprop_step(block, memory().part(0, range),
                 {.rate = rate(),
                  .smoothing = spec().alpha,
                  .epsilon = spec().epsilon.value_or(usual_epsilon)});
  }
};

/// Adam, and AdamW, which decays the weights themselves.
class Adam final : public Rule {
 public:
  Adam(const RuleSpec& spec, std::size_t values)
      : Rule({.rule = spec.name, .slots = {"exp_avg", "exp_avg_sq"}, .counts_steps = true}, spec,
             values) {}

 private:
  void step(const StepBlock& block, ValueRange range) override {
    const auto steps = static_cast<double>(memory().steps());
    const bool decoupled = spec().name == "adamw";
    StepBlock decayed = block;
    if (decoupled) decayed.decay = 0;
    adam_step(decayed, {.mean = memory().part(0, range), .mean_square = memory().part(1, range)},
              {.rate = rate(),
               .beta1 = spec().beta1,
               .beta2 = spec().beta2,
               .epsilon = spec().epsilon.value_or(usual_epsilon),
               .correction1 = 1 - std::pow(spec().beta1, steps),
               .correction2 = 1 - std::pow(spec().beta2, steps),
               .keep = decoupled ? 1 - rate() * spec().weight_decay : 1});
  }
};

using Made = std::unique_ptr<UpdateRule>;

template <class OneRule>
Made make(const RuleSpec& spec, std::size_t values) {
  return std::make_unique<OneRule>(spec, values);
}

struct Kind {
  std::string_view name;
  Made (*make)(const RuleSpec&, std::size_t);
  bool stands_at_zero;  ///< without weight decay, a zero gradient changes neither values nor state
};

constexpr std::array kinds{
    Kind{"sgd", make<Sgd>, true},
    Kind{"momentum", make<Momentum>, false},
    Kind{"nesterov", make<Momentum>, false},
    Kind{"adagrad", make<Adagrad>, true},
    Kind{"rmsprop", make<Rmsprop>, false},
    Kind{"adam", make<Adam>, false},
    Kind{"adamw", make<Adam>, false},
};

constexpr auto names = [] {
  std::array<std::string_view, kinds.size()> all;
  std::transform(kinds.begin(), kinds.end(), all.begin(), [](Kind kind) { return kind.name; });
  return all;
}();

/// Errors: ConfigError if no kind has this name.
const Kind& kind_of(const RuleSpec& spec) {
  const auto* const kind = std::find_if(kinds.begin(), kinds.end(),
                                        [&](const Kind& one) { return one.name == spec.name; });
  if (kind == kinds.end()) {
    throw ConfigError(fmt::format("unknown server optimizer \"{}\": expected one of {}", spec.name,
                                  fmt::join(names, ", ")));
  }
  return *kind;
}

void expect_range(const RuleSpec& spec, const char* what, double value, double limit) {
  if (value >= 0 && value < limit) return;  // false for NaN
  throw ConfigError(
      fmt::format("{} {} of server optimizer {}: expected a number from 0 to below {}", what, value,
                  spec.name, limit));
}

}  // namespace

std::unique_ptr<UpdateRule> make_update_rule(const RuleSpec& spec, std::size_t values) {
  const Kind& kind = kind_of(spec);
  expect_range(spec, "momentum", spec.momentum, 1);
  expect_range(spec, "weight decay", spec.weight_decay, HUGE_VAL);
  expect_range(spec, "beta1", spec.beta1, 1);
  expect_range(spec, "beta2", spec.beta2, 1);
  expect_range(spec, "alpha", spec.alpha, 1);
  expect_range(spec, "epsilon", spec.epsilon.value_or(0), HUGE_VAL);
  return kind.make(spec, values);
}

bool moves_without_gradient(const RuleSpec& spec) {
  return spec.weight_decay > 0 || !kind_of(spec).stands_at_zero;
}

std::span<const std::string_view> update_rule_names() {
  return names;
}

}  // namespace syncopate
