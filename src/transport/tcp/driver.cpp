#include "transport/tcp/driver.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "transport/steady_time.hpp"

namespace syncopate::tcp {
namespace {

/// How long who waits looks for itself: far longer than it takes to be woken, and short beside a step of training.
constexpr Duration patience = std::chrono::milliseconds(1);
/// Of that, how long without a rest: about as long as it takes to be woken. The core is offered to others between looks.
constexpr Duration awake = std::chrono::microseconds(50);
/// How long at least, and at most twice as long, after the last of those who wait the thread of its own comes back: longer
/// than most sums pause between two messages, short beside the time that a peer needs to notice.
constexpr Duration absence = std::chrono::microseconds(500);

}  // namespace

Driver::Driver(asio::io_context& context, Failed failed)
    : context_(context), failed_(std::move(failed)) {}

void Driver::start() {
  thread_ = std::thread([this] { run(); });
}

/// Looks again from time to time while others help, so that they need not wake it.
void Driver::run() {
  pthread_setname_np(pthread_self(), "tcp");
  Lock lock(mutex_);
  do {
    while (visited_ || steady_now() < stays_away_until_) {
      changed_.wait_for(lock, absence);
    }
    run_alone(lock);
  } while (std::exchange(called_, false));
}

void Driver::run_alone(Lock& lock) {
  alone_ = true;
  context_.restart();
  lock.unlock();
  while (!context_.stopped()) {
    guarded([this] { context_.run(); });
  }
  lock.lock();
  alone_ = false;
  changed_.notify_all();
}

void Driver::make_progress(const std::function<bool()>& done, TimePoint deadline) {
  if (done() || !begin_progress()) {
    return;
  }
  run_until(done, std::min(deadline, steady_now() + patience));
  end_progress();
}

bool Driver::begin_progress() {
  Lock lock(mutex_);
  if (std::exchange(visited_, true)) {
    return false;
  }
  if (alone_) {
    called_ = true;
    context_.stop();
    changed_.wait(lock, [this] { return !alone_; });
  }
  context_.restart();
  return true;
}

void Driver::run_until(const std::function<bool()>& done, TimePoint end) {
  TimePoint rest = steady_now() + awake;
  for (TimePoint now = steady_now(); now < end && !done() && !context_.stopped();
       now = steady_now()) {
    guarded([&] {
      if (now >= rest) {
        context_.run_one_until(to_steady(end));
      } else if (context_.poll_one() > 0) {
        rest = steady_now() + awake;
      } else {
        ::sched_yield();
      }
    });
  }
}

void Driver::end_progress() {
  const Lock lock(mutex_);
  visited_ = false;
  stays_away_until_ = steady_now() + absence;
}

template <class Work>
void Driver::guarded(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    failed_(error);
  }
}

}  // namespace syncopate::tcp
