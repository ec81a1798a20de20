#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// Decides how a job of several processes ends. Process 0 is the coordinator.
///
/// The user's first end request goes to the coordinator, the second kills the processes. After a
/// process has failed or the coordinator has ended, the others get a grace period to end by
/// themselves. A process that may be lost does not count as failed unless it refused its input: the
/// coordinator decides whether the job continues without it. Some of these are started again, a
/// limited number of times, while the job continues; if the coordinator then refuses one, it is not
/// needed any more. A coordinator that does not answer the request hangs: all processes get a
/// signal to end, and are killed after the grace period. A job that has succeeded stays a success:
/// a request after its end was reported only shortens the grace period of the remaining processes,
/// and the next one kills them. Programs of the user may begin to train late or never, and may
/// continue after a training that has ended well. So a request outside of a training goes to all of
/// them at once, as if the coordinator did not answer.
/// Invariant: after `kill` there is no other action.
class JobEnd {
 public:
  enum class Action {
    none,
    ask,           ///< request the end from the coordinator; call `no_answer` if none comes
    start_grace,   ///< call `grace_passed` after the grace period
    report_loss,   ///< print that the process is lost
    kill,          ///< kill all running processes
    give_up,       ///< signal all running processes to end, and start the grace period
    end_programs,  ///< the same, for programs that do not train
    restart,       ///< call `start_again` after a delay, and start the process if it says so
  };

  struct Failure {
    std::size_t process = 0;
    int wait_status = 0;
  };

  /// `may_be_lost`: for each process, true if the job can continue without it. `restarts`: how
  /// often each of these is started again; empty: never.
  /// `programs`: the processes after the coordinator are programs of the user.
  explicit JobEnd(std::vector<bool> may_be_lost, std::vector<unsigned> restarts = {},
                  bool programs = false)
      : may_be_lost_(std::move(may_be_lost)),
        programs_(programs),
        restarts_(std::move(restarts)),
        restarted_(may_be_lost_.size(), 0),
        running_(may_be_lost_.size(), true) {
    restarts_.resize(may_be_lost_.size(), 0);
  }

  Action interrupted();
  /// No process reads the output of the job any more: this is an end request that kills nothing.
  Action output_closed();
  /// The coordinator of programs has shown that a training continues, or that it has ended.
  void trains(bool goes_on);
  /// The coordinator has not answered the request to end in time.
  Action no_answer();
  bool was_interrupted() const { return interrupted_; }
  /// True if the user waits for the end.
  bool is_urgent() const { return interrupted_ || hurried_; }
  /// `wait_status`: the status from `waitpid`.
  Action ended(std::size_t process, int wait_status);
  Action grace_passed();
  /// The coordinator has sent its last event and ends soon. If the job is a success, it stays one
  /// even if a process then has to be killed.
  Action reported_end(bool success);
  /// The delay after `restart` has passed. Returns true if the process is to run again, false if
  /// the job ends.
  bool start_again(std::size_t process);
  /// The process could not be started after all.
  void not_started(std::size_t process) { running_[process] = false; }
  /// How often the process was to be started again up to now.
  unsigned restarted(std::size_t process) const { return restarted_[process]; }

  bool is_running(std::size_t process) const { return running_[process]; }
  bool all_ended() const;
  /// True if the coordinator has reported that the job has ended well.
  bool succeeded() const { return succeeded_; }
  /// True once the supervisor has killed the processes.
  bool killed() const { return killed_ || gave_up_; }
  /// A process of a job that does not train has left it, or has ended. Its absence makes others
  /// fail, which may end before it does.
  void left(std::size_t process);
  /// The failure of the process that has left first, else of the one that has ended first.
  std::optional<Failure> first_failure() const;

  /// The status of the whole job (`job/launch/exit_status.hpp`), valid once all processes have
  /// ended.
  int exit_status() const;

 private:
  Action kill();
  Action lost(std::size_t process, bool refused);
  bool is_ending() const { return interrupted_ || output_closed_ || grace_started_ || killed_; }

  std::vector<bool> may_be_lost_;
  bool programs_;
  std::vector<unsigned> restarts_;   ///< allowed
  std::vector<unsigned> restarted_;  ///< so far
  std::vector<bool> running_;
  std::vector<Failure> failures_;
  std::vector<std::size_t> left_;  ///< the current job, in this order; empty if it trains
  bool trains_ = false;
  bool interrupted_ = false;
  bool hurried_ = false;  ///< by a request after the job had ended well
  bool output_closed_ = false;
  bool refused_ = false;
  bool succeeded_ = false;
  bool grace_started_ = false;
  bool killed_ = false;
  bool gave_up_ = false;  ///< the coordinator did not answer
};

/// "was killed by signal 9 (Killed)", "ended with exit status 3".
std::string describe_end(int wait_status);

}  // namespace syncopate
