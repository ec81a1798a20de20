#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// The world of a real node: threads, the steady clock, and the transport it is given.
///
/// Clock:   stands still while this process is suspended (`AwakeClock`), so that a suspension
///          extends the process's deadlines.
/// Threads: every task is a thread of its own, named after the task (the system keeps 15 letters).
/// Lifetime: tasks, each of which waits for its end when it is destroyed, and events are destroyed
///           before their world; the world destroys the transport.
class RealWorld final : public World {
 public:
  explicit RealWorld(std::unique_ptr<Transport> transport);

  TimePoint now() const override;
  Transport& transport() override { return *transport_; }
  void sleep_until(TimePoint when) override;
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override;
  std::unique_ptr<Event> make_event() override;
  void cancel(std::exception_ptr why) noexcept override;

 private:
  class ClockKeeper;
  class ThreadTask;
  class FlagEvent;

  bool is_cancelled();
  /// Waits until `ready`, which is called under the mutex. Returns false at the deadline.
  /// Errors: the error that `cancel` received; Interrupted (`interruption`).
  bool wait(MutexLock& lock, std::condition_variable& changed, TimePoint deadline,
            const std::function<bool()>& ready) REQUIRES(mutex_);

  std::shared_ptr<ClockKeeper> clock_keeper_;  ///< owned by every world of this process
  std::unique_ptr<Transport> transport_;

  Mutex mutex_;
  /// The condition variables that `cancel` must notify.
  std::multiset<std::condition_variable*> waiting_ GUARDED_BY(mutex_);
  std::exception_ptr cancelled_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
