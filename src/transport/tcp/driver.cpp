#include "transport/tcp/driver.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "transport/steady_time.hpp"

namespace syncopate::tcp {
namespace {

/// Time for which a waiting thread runs the event loop before it blocks: far longer than a wake-up
/// takes, and short compared with a training step.
constexpr Duration patience = std::chrono::milliseconds(1);
/// The first part of `patience`, in which the thread polls without sleeping and yields the core
/// between polls: about as long as a wake-up takes.
constexpr Duration awake = std::chrono::microseconds(50);
/// Minimum time for which the own thread pauses after the last waiting thread; the maximum is twice
/// this. Longer than the pause of most collectives between two messages, but too short for a peer
/// to notice.
constexpr Duration pause = std::chrono::microseconds(500);

}  // namespace

Driver::Driver(asio::io_context& context, Failed failed)
    : context_(context), failed_(std::move(failed)) {}

void Driver::start() {
  thread_ = std::thread([this] { run(); });
}

/// The own thread wakes up from time to time while other threads run handlers, so that these need
/// not wake it.
void Driver::run() {
  pthread_setname_np(pthread_self(), "tcp");
  MutexLock lock(mutex_);
  do {
    while (waiting_thread_runs_ || steady_now() < paused_until_) {
      changed_.wait_for(lock.native(), pause);
    }
    own_thread_runs_ = true;
    context_.restart();
    lock.unlock();
    run_until_stopped();
    lock.lock();
    own_thread_runs_ = false;
    changed_.notify_all();
  } while (std::exchange(interrupted_, false));
}

void Driver::run_until_stopped() {
  while (!context_.stopped()) {
    guarded([this] { context_.run(); });
  }
}

void Driver::make_progress(const std::function<bool()>& done, TimePoint deadline) {
  if (done() || !begin_progress()) {
    return;
  }
  run_until(done, std::min(deadline, steady_now() + patience));
  end_progress();
}

bool Driver::begin_progress() {
  MutexLock lock(mutex_);
  if (std::exchange(waiting_thread_runs_, true)) {
    return false;
  }
  if (own_thread_runs_) {
    interrupted_ = true;
    context_.stop();
    while (own_thread_runs_) {
      changed_.wait(lock.native());
    }
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
  const MutexLock lock(mutex_);
  waiting_thread_runs_ = false;
  paused_until_ = steady_now() + pause;
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
