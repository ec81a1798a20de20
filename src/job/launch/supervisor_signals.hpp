#pragma once

#include <csignal>
#include <vector>

#include "base/time.hpp"
#include "job/launch/descriptor.hpp"

namespace syncopate {

/// The signals of a supervisor, which it reads from a descriptor: the end of a child, the user's
/// end request, a new size of the terminal. An end request that this process ignored from its start
/// (`nohup`) stays ignored. Ctrl-Z is read and dropped: it would stop only the supervisor, and the
/// job would continue unseen. With programs of the user, also the signals that are passed on only
/// to them: SIGUSR1 and SIGUSR2.
class SignalInbox {
 public:
  /// Errors: Error.
  explicit SignalInbox(bool programs = false);
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int descriptor() const { return descriptor_.get(); }

  /// The signals since the last call, oldest first.
  std::vector<int> take();

  /// Restores the signals in a forked child.
  void leave_in_child();

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

/// Ignores the next end request of each kind, if it would end this process: the job is over, and
/// the exit status must report its result. The request after it has its usual effect. Called while
/// a `SignalInbox` still holds the signals back, so that none ends this process in between.
void pass_over_next_requests();

/// A timer as a descriptor that becomes readable.
class Timer {
 public:
  /// Errors: Error.
  Timer();

  int descriptor() const { return descriptor_.get(); }

  /// Fires once, after `delay`. A delay of zero stops the timer.
  void start(Duration delay) { set(delay, {}); }
  /// Fires every `period`; a period of zero stops the timer.
  void repeat(Duration period) { set(period, period); }
  /// Makes the descriptor unreadable until the timer fires again.
  void acknowledge();

 private:
  void set(Duration first, Duration period);

  Descriptor descriptor_;
};

}  // namespace syncopate
