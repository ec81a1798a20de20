#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/world.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// Stands between a backward pass and the scheme that takes its gradient while it is made. Nothing follows a value
/// that is not finite, so that it spoils nobody's mean. What an emulated device makes is held back until the
/// device of its profile would have it.
///
/// That device is taken to need a third of its step for the forward pass, and then to make its gradient evenly: of
/// most networks, whose last layers have the most parameters, the first values come sooner.
///
/// Thread: one.
class PacedGradientSink final : public GradientSink {
 public:
  /// Whether values wait for `let_through`.
  enum class Hold { no, yes };

  /// Before a pass, whose gradient `to` takes; null: nobody does. `gradient` is where the pass makes it.
  void begin(GradientSink* to, std::span<const float> gradient, Hold hold);

  /// Errors: those of the one that takes it.
  void ready(std::size_t begin, std::size_t end) override;

  /// Hands on what was held back of a step from `begun` to `due`, each part when it is time, and is done by `due`.
  /// Errors: those of `World::sleep_until`, and of the one that takes it.
  void let_through(World& world, TimePoint begun, TimePoint due);

  /// Whether the gradient of this pass is taken while it is made.
  bool in_use() const { return to_ != nullptr; }
  /// Of what came of this pass.
  bool finite() const { return finite_; }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  GradientSink* to_ = nullptr;
  std::span<const float> gradient_;
  Hold hold_ = Hold::no;
  std::vector<Range> held_;
  bool finite_ = true;
};

}  // namespace syncopate
