#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/mutex.hpp"
#include "base/time.hpp"

namespace syncopate::mpi {

/// The engine lock: a mutex that one thread locks in a loop and others lock now and then. The
/// others have precedence.
class EngineLock {
 public:
  void lock() {
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  /// For the thread that loops: it would otherwise lock again before another thread has woken up.
  void lock_after_others() {
    while (waiting_ > 0) {
      ::sched_yield();
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

/// Wakes a thread that sleeps between two polls. Any thread, under any lock.
class WakeupEvent {
 public:
  void notify();
  /// Sleeps until a notification, at most for `limit`. Returns true if there was a notification
  /// since the last call.
  bool await(Duration limit);
  bool take();

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  bool notified_ GUARDED_BY(mutex_) = false;
};

/// Decides how often a thread polls MPI, which cannot wake a thread up: the thread first spins for
/// about the time of a reply, then yields the core, then sleeps for longer and longer.
class PollBackoff {
 public:
  /// `has_core`: the host has at least as many cores as ranks.
  PollBackoff(WakeupEvent& wakeup, bool has_core);

  /// Restarts, after something has moved: more is likely to follow.
  void restart();
  /// Waits until it is time to poll again.
  void pause();

 private:
  WakeupEvent& wakeup_;
  const bool has_core_;
  TimePoint quiet_since_;
  Duration nap_;
};

}  // namespace syncopate::mpi
