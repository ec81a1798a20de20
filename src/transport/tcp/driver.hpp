#pragma once

#include <asio/io_context.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "base/time.hpp"

namespace syncopate::tcp {

/// Runs the handlers of an io context: on a thread of its own, and while another thread waits for a
/// message, on the waiting thread. So a message that arrives wakes one thread and not two, or none
/// where it arrives soon, and the core that needs the message reads it.
///
/// One thread at a time runs handlers, and each handler sees the effects of those before it. To
/// handlers it is one thread, "the engine".
///
/// Threads: `make_progress` any; `start` and `join` the owner's.
class Driver {
 public:
  /// Receives each exception of a handler. The other handlers go on.
  using Failed = std::function<void(const std::exception&)>;

  Driver(asio::io_context& context, Failed failed);

  /// Starts the thread, which runs handlers until the context is out of work.
  void start();
  bool is_started() const { return thread_.joinable(); }
  void join() { thread_.join(); }

  /// Runs handlers until `done` returns true, or for a short time, after which the caller had
  /// better sleep until it is woken. Returns at once where another waiting thread runs handlers.
  /// The driver's own thread pauses meanwhile, and a little longer, since a thread that waited once
  /// will wait again. The caller holds no lock that a handler takes; `done` may take some.
  void make_progress(const std::function<bool()>& done, TimePoint deadline);

 private:
  void run();
  void run_until_stopped();
  bool begin_progress();
  void end_progress();
  void run_until(const std::function<bool()>& done, TimePoint end);
  template <class Work>
  void guarded(const Work& work);

  asio::io_context& context_;
  const Failed failed_;

  Mutex mutex_;
  std::condition_variable changed_;
  bool own_thread_runs_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;  ///< the own thread was stopped for a waiting one
  bool waiting_thread_runs_ GUARDED_BY(mutex_) = false;
  TimePoint paused_until_ GUARDED_BY(mutex_){};

  std::thread thread_;
};

}  // namespace syncopate::tcp
