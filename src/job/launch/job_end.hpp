#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// Decides how a job of several processes ends. Process 0 is the coordinator.
///
/// The first end request of the user goes to the coordinator, the second kills the processes. After
/// a process has failed or the coordinator has ended, the others get a grace period to end by
/// themselves. A process that may be lost does not count as failed unless it refused its input: the
/// coordinator decides whether the job continues without it. A coordinator that does not answer the
/// request hangs: all processes get a signal to end, and are killed after the grace period.
/// Invariant: after `kill` there is no other action.
class JobEnd {
 public:
  enum class Action {
    none,
    ask,          ///< request the end from the coordinator; call `no_answer` if none comes
    start_grace,  ///< call `grace_passed` after the grace period
    report_loss,  ///< print that the process is lost
    kill,         ///< kill all running processes
    give_up,      ///< signal all running processes to end, and start the grace period
  };

  struct Failure {
    std::size_t process = 0;
    int wait_status = 0;
  };

  /// `may_be_lost`: for each process, true where the job can continue without it.
  explicit JobEnd(std::vector<bool> may_be_lost)
      : may_be_lost_(std::move(may_be_lost)), running_(may_be_lost_.size(), true) {}

  Action interrupted();
  /// Nobody reads the output of the job any more: a request for the end, which kills nothing.
  Action output_closed();
  /// The coordinator has not answered the request to end in time.
  Action no_answer();
  bool was_interrupted() const { return interrupted_; }
  /// `wait_status`: the status from `waitpid`.
  Action ended(std::size_t process, int wait_status);
  Action grace_passed();

  bool is_running(std::size_t process) const { return running_[process]; }
  bool all_ended() const;
  /// True once the supervisor has killed the processes.
  bool killed() const { return killed_ || gave_up_; }
  const std::optional<Failure>& first_failure() const { return first_failure_; }

  /// The status of the whole job (`job/launch/exit_status.hpp`), valid once all processes have
  /// ended.
  int exit_status() const;

 private:
  Action kill();

  std::vector<bool> may_be_lost_;
  std::vector<bool> running_;
  std::optional<Failure> first_failure_;
  bool interrupted_ = false;
  bool output_closed_ = false;
  bool refused_ = false;
  bool grace_started_ = false;
  bool killed_ = false;
  bool gave_up_ = false;  ///< the coordinator did not answer
};

/// "was killed by signal 9 (Killed)", "ended with exit status 3".
std::string describe_end(int wait_status);

}  // namespace syncopate
