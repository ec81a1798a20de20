#pragma once

#include <csignal>
#include <vector>

#include "base/time.hpp"
#include "job/launch/descriptor.hpp"

namespace syncopate {

/// The signals of a supervisor, to be read from a descriptor instead of interrupting it: the end of
/// a child, the user's wish for an end, another size of the terminal. A wish that this process was
/// started to ignore (`nohup`) stays ignored. Ctrl-Z is taken and passed over: a job whose
/// supervisor stands still would only time out.
class SignalInbox {
 public:
  /// Errors: Error.
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int descriptor() const { return descriptor_.get(); }

  /// The signals that came since the last call, oldest first.
  std::vector<int> take();

  /// Gives a forked child its signals back.
  void leave_in_child();

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

/// A timer as a descriptor that becomes readable.
class Timer {
 public:
  /// Errors: Error.
  Timer();

  int descriptor() const { return descriptor_.get(); }

  /// Fires after `delay`, once. A delay of nothing stops the timer.
  void start(Duration delay) { set(delay, {}); }
  /// Fires every `period`; a period of nothing stops the timer.
  void repeat(Duration period) { set(period, period); }
  /// Takes note that the timer fired.
  void acknowledge();

 private:
  void set(Duration first, Duration period);

  Descriptor descriptor_;
};

}  // namespace syncopate
