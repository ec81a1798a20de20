#include "transport/mpi/pace.hpp"

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

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  changed_.notify_all();
}

bool Bell::await(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, to_steady(steady_now() + limit), [this] { return rung_; });
  return std::exchange(rung_, false);
}

bool Bell::has_rung() {
  const std::lock_guard lock(mutex_);
  return std::exchange(rung_, false);
}

Pace::Pace(Bell& bell, bool alone) : bell_(bell), alone_(alone) {
  restart();
}

void Pace::restart() {
  quiet_since_ = steady_now();
  nap_ = first_nap;
}

void Pace::pause() {
  const Duration quiet = steady_now() - quiet_since_;
  if (alone_ && quiet < spinning) {
    return;
  }
  if (quiet < yielding) {
    ::sched_yield();
  } else if (bell_.await(nap_)) {
    restart();
  } else {
    nap_ = std::min(2 * nap_, longest_nap);
  }
}

}  // namespace syncopate::mpi
