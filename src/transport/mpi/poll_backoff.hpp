#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/time.hpp"

namespace syncopate::mpi {

/// A mutex that one thread locks in a loop, and others now and then: those go first.
class EngineLock {
 public:
  void lock() {
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  /// For the loop, which would be back before anyone else has woken.
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

/// Wakes those who look now and then, before they would look again. Any thread, under any lock.
class WakeupEvent {
 public:
  void notify();
  /// Sleeps until it rings, at most so long. True where it has rung since it was last asked.
  bool await(Duration limit);
  bool take();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
};

/// How often to look whether anything has moved: MPI wakes nobody. Awake for as long as an answer takes that is on
/// its way, then with the core lent to others, then asleep for longer and longer.
class PollBackoff {
 public:
  /// `alone`: there are no more ranks on the host than cores.
  PollBackoff(WakeupEvent& wakeup, bool alone);

  /// Something has moved: more is likely to follow.
  void restart();
  /// Waits until it is time to look again.
  void pause();

 private:
  WakeupEvent& wakeup_;
  const bool alone_;
  TimePoint quiet_since_;
  Duration nap_;
};

}  // namespace syncopate::mpi
