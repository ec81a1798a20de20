#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "runtime/world.hpp"
#include "scheme/averaging.hpp"

namespace syncopate {

/// A meeting that takes place in a task of its own, while its worker trains on.
///
/// Threads: one task calls. From `begin` until `take` the background task has the averaging and the
///          values for its own.
class BackgroundAveraging {
 public:
  /// `averaging` outlives this.
  explicit BackgroundAveraging(Averaging& averaging) : averaging_(averaging) {}
  /// Waits for the end of a meeting that is under way.
  ~BackgroundAveraging() = default;

  /// No other is under way. The values are lent until `take`.
  void begin(Round round, const StepInfo& info, const Averaging::Values& values);

  bool under_way() const { return task_ != nullptr; }
  /// Whether `take` would return at once.
  bool finished() const { return under_way() && finished_; }

  /// Waits for the end of the meeting under way. Errors: those of `Averaging::meet`.
  Averaging::Result take();

 private:
  Averaging& averaging_;
  std::optional<Averaging::Result> result_;  ///< the background task's, until it has ended
  std::atomic<bool> finished_ = false;
  std::unique_ptr<Task> task_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
