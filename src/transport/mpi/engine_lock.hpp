#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>

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

}  // namespace syncopate::mpi
