#pragma once

#include <asio/io_context.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.hpp"

namespace syncopate::tcp {

/// Runs the handlers of an io context: on a thread of its own, and while somebody waits for a message, on the thread that
/// waits. So what arrives wakes one thread and not two, or none where it arrives soon, and is read by the core that needs it.
///
/// One thread runs handlers at a time, and each sees what those before it did: to handlers it is one thread, "the engine".
///
/// Threads: `make_progress` from any; `start` and `join` from the owner's.
class Driver {
 public:
  /// Told of what a handler throws. Handlers go on.
  using Failed = std::function<void(const std::exception&)>;

  Driver(asio::io_context& context, Failed failed);

  /// Begins the thread, which runs handlers until the context is out of work.
  void start();
  bool is_started() const { return thread_.joinable(); }
  void join() { thread_.join(); }

  /// Runs handlers until `done` says so, but not for long: soon it is better to be woken. At once over where another thread
  /// helps. The thread of its own stays away meanwhile, and a little longer, since who waited once will wait again.
  /// The caller holds no lock that a handler takes, and `done` may take some.
  void make_progress(const std::function<bool()>& done, TimePoint deadline);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void run_alone(Lock& lock);
  bool begin_progress();
  void end_progress();
  void run_until(const std::function<bool()>& done, TimePoint end);
  template <class Work>
  void guarded(const Work& work);

  asio::io_context& context_;
  const Failed failed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool alone_ = false;    ///< the thread of its own runs handlers
  bool called_ = false;   ///< it was stopped to make room
  bool visited_ = false;  ///< another one runs them
  TimePoint stays_away_until_{};

  std::thread thread_;
};

}  // namespace syncopate::tcp
