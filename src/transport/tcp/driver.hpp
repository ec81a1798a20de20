#pragma once

#include <asio/io_context.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "base/time.hpp"

namespace syncopate::tcp {

/// Runs the handlers of an io context on its own thread, or, while another thread waits for a
/// message, on the waiting thread. So an arriving message wakes one thread instead of two, or none
/// if it arrives soon, and the core that needs the message reads it.
///
/// One thread at a time runs handlers, and each handler sees the effects of earlier handlers. The
/// handlers may regard it as one thread, "the engine".
///
/// Threads: any thread calls `make_progress`; the owner calls `start` and `join`.
class Driver {
 public:
  /// Receives each exception of a handler. The other handlers continue.
  using Failed = std::function<void(const std::exception&)>;

  Driver(asio::io_context& context, Failed failed);

  /// Starts the thread, which runs handlers until the context is out of work.
  void start();
  bool is_started() const { return thread_.joinable(); }
  void join() { thread_.join(); }

  /// Runs handlers until `done` returns true, but only for a short time, after which the caller
  /// should sleep until it is woken. Returns at once if another waiting thread runs handlers. The
  /// driver's own thread pauses during the call and a little longer, since a thread that waited
  /// once will wait again. The caller must hold no lock that a handler takes; `done` may take
  /// locks.
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
  bool interrupted_ GUARDED_BY(mutex_) = false;  ///< the own thread stopped for a waiting thread
  bool waiting_thread_runs_ GUARDED_BY(mutex_) = false;
  TimePoint paused_until_ GUARDED_BY(mutex_){};

  std::thread thread_;
};

}  // namespace syncopate::tcp
