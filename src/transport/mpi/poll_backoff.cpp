#include "transport/mpi/poll_backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "transport/steady_time.hpp"

namespace syncopate::mpi {
namespace {

/// As long as the answer to a small message takes that finds its receiver awake.
constexpr Duration spinning = std::chrono::microseconds(30);
/// As long as it takes a few threads of a host with more ranks than cores to have their turn.
constexpr Duration yielding = std::chrono::microseconds(300);
constexpr Duration first_nap = std::chrono::microseconds(20);
/// A look takes some 10 µs: an idle rank then costs about one hundredth of a core.
constexpr Duration longest_nap = std::chrono::milliseconds(1);

}  // namespace

void WakeupEvent::notify() {
  {
    const std::lock_guard lock(mutex_);
    notified_ = true;
  }
  changed_.notify_all();
}

bool WakeupEvent::await(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, to_steady(steady_now() + limit), [this] { return notified_; });
  return std::exchange(notified_, false);
}

bool WakeupEvent::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notified_, false);
}

PollBackoff::PollBackoff(WakeupEvent& wakeup, bool alone) : wakeup_(wakeup), alone_(alone) {
  restart();
}

void PollBackoff::restart() {
  quiet_since_ = steady_now();
  nap_ = first_nap;
}

void PollBackoff::pause() {
  const Duration quiet = steady_now() - quiet_since_;
  if (alone_ && quiet < spinning) {
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
