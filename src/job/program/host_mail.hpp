#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <optional>

#include "base/mutex.hpp"
#include "job/program/program_messages.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// What the coordinator sends to one program, for the threads of the program that wait for
/// different messages. One of them receives for all.
///
/// Thread: any.
class HostMail {
 public:
  /// The world outlives this.
  explicit HostMail(World& world) : world_(world) {}

  using Wanted = std::function<bool(const wire::ToProgram& message)>;
  /// The first message that is `wanted`. Errors, from then on in every call: the error that the
  /// coordinator has sent; Cancelled, when the user has ended the job; PeerLost. Of one call:
  /// Cancelled, if its thread is interrupted (`interruption`).
  wire::ToProgram receive(const Wanted& wanted);
  /// The error that has ended the job, if the coordinator sends it within `limit`; else null.
  std::exception_ptr end_of_job(Duration limit);

 private:
  std::optional<wire::ToProgram> take(const Wanted& wanted) REQUIRES(mutex_);
  /// Waits for one that any thread receives, no longer than until then.
  void await_one(MutexLock& lock, TimePoint deadline) REQUIRES(mutex_);
  void receive_one(MutexLock& lock, TimePoint deadline) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;
  void keep(wire::ToProgram message) REQUIRES(mutex_);

  World& world_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::list<wire::ToProgram> kept_ GUARDED_BY(mutex_);  ///< that no thread has wanted yet
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;  ///< the job, by an error that the coordinator has sent
  bool receiving_ GUARDED_BY(mutex_) = false;
};

}  // namespace syncopate
