#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/errors.hpp"
#include "runtime/world.hpp"

namespace syncopate::test {

/// A world of threads and events alone, whose clock stands still. It has no network. It counts
/// its blocked threads, so that a test can wait for a thread to block instead of sleeping.
class ThreadWorld : public World {
 public:
  TimePoint now() const override { return {}; }
  Transport& transport() override { throw InternalError("this world has no network"); }
  void sleep_until(TimePoint) override {}

  std::unique_ptr<Task> spawn(const std::string&, std::function<void()> body) override {
    return std::make_unique<ThreadTask>(std::move(body));
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<ThreadEvent>(*this); }

  void cancel(std::exception_ptr why) noexcept override {
    const std::scoped_lock lock(mutex_);
    why_ = std::move(why);
    changed_.notify_all();
  }

  /// Returns when that many threads are blocked in events.
  void await_blocked(std::size_t threads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return blocked_ == threads; });
  }

  /// The number of waits for events so far.
  std::size_t waits() const {
    const std::scoped_lock lock(mutex_);
    return waits_;
  }

 private:
  class ThreadTask : public Task {
   public:
    explicit ThreadTask(std::function<void()> body) : thread_(std::move(body)) {}
    ~ThreadTask() override { thread_.join(); }
    void join() override { throw InternalError("this world's tasks end with their objects"); }

   private:
    std::thread thread_;
  };

  class ThreadEvent : public Event {
   public:
    explicit ThreadEvent(ThreadWorld& world) : world_(world) {}

    void notify() override {
      const std::scoped_lock lock(world_.mutex_);
      if (!std::exchange(notified_, true)) {
        world_.blocked_ -= std::exchange(waiting_, false) ? 1 : 0;
      }
      world_.changed_.notify_all();
    }

    bool wait(TimePoint) override {
      std::unique_lock lock(world_.mutex_);
      ++world_.waits_;
      if (!notified_) {
        waiting_ = true;
        ++world_.blocked_;
        world_.changed_.notify_all();
      }
      world_.changed_.wait(lock, [&] { return notified_ || world_.why_; });
      world_.blocked_ -= std::exchange(waiting_, false) ? 1 : 0;
      if (world_.why_) {
        std::rethrow_exception(world_.why_);
      }
      notified_ = false;
      return true;
    }

   private:
    ThreadWorld& world_;
    bool notified_ = false;
    bool waiting_ = false;  ///< counted in `blocked_`
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr why_;
  std::size_t blocked_ = 0;
  std::size_t waits_ = 0;
};

}  // namespace syncopate::test
