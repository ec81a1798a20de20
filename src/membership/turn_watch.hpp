#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Notices that a task no longer turns, though its process lives: a task of its own counts the
/// moments at which the turns stand still. A process that is stopped as a whole counts none.
///
/// Thread: `turned` the watched task's; the other members its owner's.
class TurnWatch {
 public:
  struct Options {
    Duration limit{};                            ///< without a turn
    std::function<void(Duration)> stands_still;  ///< called once, in the watching task
  };

  TurnWatch(World& world, Options options);
  ~TurnWatch();
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;

  /// The watched task has turned once more.
  void turned() { ++turns_; }

  /// From now on no turn is missed.
  void end();

  static constexpr Duration glance = std::chrono::seconds(1);

 private:
  void run();

  World& world_;
  Options options_;
  std::atomic<std::uint64_t> turns_ = 0;
  std::atomic<bool> ended_ = false;
  std::unique_ptr<Event> end_;
  std::unique_ptr<Task> task_;
};

}  // namespace syncopate
