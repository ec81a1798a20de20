#include "transport/mpi/poll_backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "transport/steady_time.hpp"

namespace syncopate::mpi {
namespace {

/// The time until the reply to a small message whose receiver is awake.
constexpr Duration spinning = std::chrono::microseconds(30);
/// The time in which a few threads of a host with more ranks than cores each get a core.
constexpr Duration yielding = std::chrono::microseconds(300);
constexpr Duration first_nap = std::chrono::microseconds(20);
/// A poll takes some 10 µs, so an idle rank costs about one hundredth of a core.
constexpr Duration longest_nap = std::chrono::milliseconds(1);

}  // namespace

void WakeupEvent::notify() {
  {
    const MutexLock lock(mutex_);
    notified_ = true;
  }
  changed_.notify_all();
}

bool WakeupEvent::await(Duration limit) {
  MutexLock lock(mutex_);
  changed_.wait_until(lock.native(), to_steady(steady_now() + limit),
                      [this]() REQUIRES(mutex_) { return notified_; });
  return std::exchange(notified_, false);
}

bool WakeupEvent::take() {
  const MutexLock lock(mutex_);
  return std::exchange(notified_, false);
}

PollBackoff::PollBackoff(WakeupEvent& wakeup, bool has_core)
    : wakeup_(wakeup), has_core_(has_core) {
  restart();
}

void PollBackoff::restart() {
  quiet_since_ = steady_now();
  nap_ = first_nap;
}

void PollBackoff::pause() {
  const Duration quiet = steady_now() - quiet_since_;
  if (has_core_ && quiet < spinning) {
    return;
  }
  if (quiet < yielding) {
    ::sched_yield();
  } else if (wakeup_.await(nap_)) {
    restart();
  } else {
    nap_ = std::min(2 * nap_, longest_nap);
  }
}

}  // namespace syncopate::mpi
