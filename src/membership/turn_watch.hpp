#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Notices that the loop of a task makes no more turns although its process lives. A separate task
/// counts the time without a turn; while the whole process is stopped, it counts none.
///
/// Thread: the watched task calls `turned`; the owner calls the other members.
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

  /// The watched task calls this in every turn.
  void turned() { ++turns_; }

  /// Stops the watch.
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
