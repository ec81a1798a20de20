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
/// coordinator decides whether the job continues without it. Some of these are started again, a
/// limited number of times, while the job goes on. One that the coordinator then refuses is needed
/// no more. A coordinator that does not answer the
/// request hangs: all processes get a signal to end, and are killed after the grace period. A job
/// that is a success stays one: a request after its end was reported only shortens the grace period
/// of what is left, and the next one kills it.
/// Programs of the user may begin to train late or never, and go on for as long as they like after
/// a training that has ended well: a request outside of a training goes to all of them at once, as
/// where the coordinator does not answer.
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
    end_programs,  ///< the same, of programs that do not train
    restart,       ///< call `start_again` after a delay, and start the process if it says so
  };

  struct Failure {
    std::size_t process = 0;
    int wait_status = 0;
  };

  /// `may_be_lost`: for each process, true where the job can continue without it. `restarts`: how
  /// often each of these is started again; empty: never.
  /// `programs`: those after the coordinator are of the user.
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
  /// Nobody reads the output of the job any more: a request for the end, which kills nothing.
  Action output_closed();
  /// The coordinator of programs has shown that a training goes on, or that it has ended.
  void trains(bool goes_on);
  /// The coordinator has not answered the request to end in time.
  Action no_answer();
  bool was_interrupted() const { return interrupted_; }
  /// The user waits for the end.
  bool is_urgent() const { return interrupted_ || hurried_; }
  /// `wait_status`: the status from `waitpid`.
  Action ended(std::size_t process, int wait_status);
  Action grace_passed();
  /// The coordinator has sent its last event, so that it ends soon. If the job is a success, it
  /// stays one though a process then has to be killed.
  Action reported_end(bool success);
  /// The delay after `restart` has passed. True: the process runs again. False: the job ends.
  bool start_again(std::size_t process);
  /// It could not be started after all.
  void not_started(std::size_t process) { running_[process] = false; }
  /// How often the process was to be started again so far.
  unsigned restarted(std::size_t process) const { return restarted_[process]; }

  bool is_running(std::size_t process) const { return running_[process]; }
  bool all_ended() const;
  /// The coordinator has reported that the job has ended well.
  bool succeeded() const { return succeeded_; }
  /// True once the supervisor has killed the processes.
  bool killed() const { return killed_ || gave_up_; }
  /// A process of a job that does not train has left it, or has ended. Others fail for want of it,
  /// and may end before it does.
  void left(std::size_t process);
  /// Of the process that has left first; else of the one that has ended first.
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
  std::vector<std::size_t> left_;  ///< the job of now, in this order; empty where it trains
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
