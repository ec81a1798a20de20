#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// Decides how a job of several processes comes to its end. Process 0 is the coordinator.
///
/// The first wish of the user for an end asks the coordinator, the second kills. A process that
/// failed, and a coordinator that is gone, leave the others a while to end by themselves. A process
/// that may be lost does not count as failed, unless it refused its input: whether the job goes on
/// without it is for the coordinator to say.
/// Invariant: once `kill` was decided, nothing else is.
class JobEnd {
 public:
  enum class Action {
    none,
    ask,          ///< ask the coordinator for an end
    start_grace,  ///< call `grace_passed` after a while
    tell_loss,    ///< say that the process is lost
    kill,         ///< kill whatever still runs
  };

  struct Failure {
    std::size_t process = 0;
    int wait_status = 0;
  };

  /// `may_be_lost`: for each process, whether the job can do without it.
  explicit JobEnd(std::vector<bool> may_be_lost)
      : may_be_lost_(std::move(may_be_lost)), running_(may_be_lost_.size(), true) {}

  Action interrupted();
  /// `wait_status` is what `waitpid` gave.
  Action ended(std::size_t process, int wait_status);
  Action grace_passed();

  bool is_running(std::size_t process) const { return running_[process]; }
  bool all_ended() const;
  /// Whether the others' ends are the doing of the supervisor.
  bool killed() const { return killed_; }
  const std::optional<Failure>& first_failure() const { return first_failure_; }

  /// As `job/launch/exit_status.hpp` has them, of the whole job; meaningful once all have ended.
  int exit_status() const;

 private:
  Action kill();

  std::vector<bool> may_be_lost_;
  std::vector<bool> running_;
  std::optional<Failure> first_failure_;
  bool interrupted_ = false;
  bool refused_ = false;
  bool grace_started_ = false;
  bool killed_ = false;
};

/// "was killed by signal 9 (Killed)", "ended with exit status 3".
std::string describe_end(int wait_status);

}  // namespace syncopate
