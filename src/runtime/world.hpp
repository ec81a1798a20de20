#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// A background task of a node. Destroying it waits for its end.
class Task {
 public:
  virtual ~Task() = default;

  /// Blocks until the task has ended; throws the error that ended it, once.
  virtual void join() = 0;
};

/// Wakes one task of a node from another. If no task waits, one notification is kept.
class Event {
 public:
  virtual ~Event() = default;

  virtual void notify() = 0;
  /// True when notified, false when the deadline passed.
  /// Errors: the error that `World::cancel` received.
  virtual bool wait(TimePoint deadline) = 0;
};

/// The environment of a node: its clock, its transport, sleep, and background tasks.
///
/// There are two: `RealWorld` on threads and the steady clock, and the simulator's on fibers and a
/// virtual clock. Code behaves the same in both, provided that it blocks only in calls of this
/// interface and of the transport.
///
/// Tasks of one node may share memory under a mutex, as long as none blocks in a call of the world
/// or the transport while it holds it.
class World : public Clock {
 public:
  virtual Transport& transport() = 0;

  /// Errors: the error that `cancel` received.
  virtual void sleep_until(TimePoint when) = 0;

  virtual std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  /// Ends every blocking call of this node, in every task, with `why`. Only the first call has an
  /// effect.
  virtual void cancel(std::exception_ptr why) noexcept = 0;

  void sleep_for(Duration duration) { sleep_until(now() + duration); }
};

}  // namespace syncopate
