#include "runtime/real_world.hpp"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "base/log.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {

/// Keeps the clock of this process beating while it lives.
class RealWorld::ClockKeeper {
 public:
  /// The constructor does the first beat itself, so that no suspension is missed.
  ClockKeeper() : thread_((first_beat(), [this] { beat_until_end(); })) {}

  ~ClockKeeper() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  ClockKeeper(const ClockKeeper&) = delete;
  ClockKeeper& operator=(const ClockKeeper&) = delete;

  /// The keeper of this process: its worlds share it, and the last one ends it.
  static std::shared_ptr<ClockKeeper> shared() {
    static Mutex mutex;
    static std::weak_ptr<ClockKeeper> existing;
    const MutexLock lock(mutex);
    std::shared_ptr<ClockKeeper> keeper = existing.lock();
    if (!keeper) {
      // A keeper whose last world is just gone may still beat; the new one then waits for its end.
      keeper = std::make_shared<ClockKeeper>();
      existing = keeper;
    }
    return keeper;
  }

 private:
  static constexpr std::chrono::milliseconds period{100};

  /// Held by the keeper that beats: one at a time, see `shared`.
  static Mutex& beating() {
    static Mutex mutex;
    return mutex;
  }

  static void first_beat() {
    const MutexLock only(beating());
    process_clock().beat();
  }

  void beat_until_end() {
    const MutexLock only(beating());
    pthread_setname_np(pthread_self(), "clock");
    MutexLock lock(mutex_);
    while (!ended_) {
      process_clock().beat();
      changed_.wait_for(lock.native(), period);
    }
    process_clock().end_beats();
  }

  Mutex mutex_;
  std::condition_variable changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  ///< last: it uses the members above
};

namespace {

/// The system refuses longer names.
constexpr std::size_t thread_name_length = 15;

/// Logs the error that ended a task. An error after the end of its node is only a consequence of
/// that end, whose reason is reported elsewhere.
void log_end_of(const std::string& task, const std::exception_ptr& error, bool cancelled) {
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    // The requested end.
  } catch (const std::exception& unexpected) {
    if (cancelled) {
      log::debug("task {} ended with its node: {}", task, unexpected.what());
    } else {
      log::warn("task {} ended with an unexpected error: {}", task, unexpected.what());
    }
  }
}

}  // namespace

class RealWorld::ThreadTask final : public Task {
 public:
  ThreadTask(RealWorld& world, const std::string& name, std::function<void()> body)
      : world_(world), name_(name), thread_([this, body = std::move(body)] { run(body); }) {}

  ~ThreadTask() override {
    if (thread_.joinable()) {
      thread_.join();
    }
    if (error_) {
      log_end_of(name_, error_, world_.is_cancelled());
    }
  }

  ThreadTask(const ThreadTask&) = delete;
  ThreadTask& operator=(const ThreadTask&) = delete;

  void join() override {
    if (thread_.joinable()) {
      thread_.join();
    }
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  void run(const std::function<void()>& body) noexcept {
    pthread_setname_np(pthread_self(), name_.substr(0, thread_name_length).c_str());
    try {
      body();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  RealWorld& world_;
  const std::string name_;
  std::exception_ptr error_;  ///< written by the thread, read once it has ended
  std::thread thread_;        ///< last: it uses the members above
};

class RealWorld::FlagEvent final : public Event {
 public:
  explicit FlagEvent(RealWorld& world) : world_(world) {}

  void notify() override {
    const MutexLock lock(world_.mutex_);
    notified_ = true;
    changed_.notify_one();
  }

  bool wait(TimePoint deadline) override {
    MutexLock lock(world_.mutex_);
    return world_.wait(lock, changed_, deadline, [this]() REQUIRES(world_.mutex_) {
      return std::exchange(notified_, false);
    });
  }

 private:
  RealWorld& world_;
  std::condition_variable changed_;
  bool notified_ GUARDED_BY(world_.mutex_) = false;
};

RealWorld::RealWorld(std::unique_ptr<Transport> transport)
    : clock_keeper_(ClockKeeper::shared()), transport_(std::move(transport)) {}

TimePoint RealWorld::now() const {
  return steady_now();
}

void RealWorld::sleep_until(TimePoint when) {
  std::condition_variable never;
  MutexLock lock(mutex_);
  wait(lock, never, when, [] { return false; });
}

std::unique_ptr<Task> RealWorld::spawn(const std::string& name, std::function<void()> body) {
  return std::make_unique<ThreadTask>(*this, name, std::move(body));
}

std::unique_ptr<Event> RealWorld::make_event() {
  return std::make_unique<FlagEvent>(*this);
}

void RealWorld::cancel(std::exception_ptr why) noexcept {
  {
    const MutexLock lock(mutex_);
    if (!cancelled_) {
      cancelled_ = why;
    }
    for (std::condition_variable* const changed : waiting_) {
      changed->notify_all();
    }
  }
  transport_->cancel(why);
}

bool RealWorld::is_cancelled() {
  const MutexLock lock(mutex_);
  return cancelled_ != nullptr;
}

bool RealWorld::wait(MutexLock& lock, std::condition_variable& changed, TimePoint deadline,
                     const std::function<bool()>& ready) {
  bool is_ready = false;
  const auto has_ended = [&]() REQUIRES(mutex_) { return cancelled_ || (is_ready = ready()); };
  const auto entry = waiting_.insert(&changed);
  bool interrupted = false;
  while (!changed.wait_until(lock.native(), to_steady(end_of_slice(deadline)), has_ended) &&
         !interrupted && now() < deadline) {
    interrupted = interruption::is_requested(lock);
  }
  waiting_.erase(entry);
  if (cancelled_) {
    std::rethrow_exception(cancelled_);
  }
  if (interrupted && !is_ready) {
    throw interruption::Interrupted();
  }
  return is_ready;
}

}  // namespace syncopate
