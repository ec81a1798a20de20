#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/job_end.hpp"
#include "job/launch/process_group.hpp"
#include "job/launch/program_ends.hpp"
#include "job/launch/supervisor_signals.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// Receives the output and the events of a running job. The supervisor calls it on its own thread.
class Watcher {
 public:
  virtual ~Watcher() = default;

  /// A line of the coordinator's events (`report/events.hpp`).
  virtual void event(std::string_view line) = 0;
  /// A line that a process wrote to its standard output or error.
  virtual void output(std::string_view process, std::string_view line) = 0;
  /// A message of the supervisor itself.
  virtual void notice(std::string_view text) = 0;

  /// The period of the calls of `refresh`; zero: no calls.
  virtual Duration refresh_period() const = 0;
  virtual void refresh() = 0;
  /// The size of the terminal has changed.
  virtual void resized() = 0;

  /// True once the reader of the job's output has gone forever, so the job must end.
  virtual bool output_closed() const { return false; }
};

/// One process of a job.
struct Child {
  std::string name;                    ///< "worker 2"
  std::function<int()> body;           ///< the main function; returns the exit status
  std::vector<Descriptor> alone = {};  ///< descriptors that no other process keeps open
  bool may_be_lost = false;            ///< its end is reported, but the job does not fail
  /// How often it is started again, if it may be lost; a new start lacks the descriptors `alone`.
  unsigned restarts = 0;
};

/// Forks the processes of a job, watches them, and ends with the last of them. A process that was
/// lost and has `restarts` left is forked again after a delay, which grows.
///
/// Children run without `exec`, so they share the loaded libraries and data of this process. The
/// kernel kills them when this process dies. Each has its own process group, so that a terminal's
/// Ctrl-C reaches only the supervisor, which signals the whole group: a program of the user may run
/// behind a shell. Processes that programs have left behind in their groups are ended after a job
/// that has failed or was interrupted; they may outlive a job that has ended well. The supervisor
/// reads the output of the processes from pipes, line by line.
///
/// Thread: construct and run it while this process has one thread.
class Supervisor {
 public:
  struct Options {
    std::vector<Child> children;                ///< the coordinator first
    Descriptor events;                          ///< the pipe of the coordinator's events
    Duration grace = std::chrono::seconds(10);  ///< see `JobEnd`
    /// The same once the user has requested the end.
    Duration requested_grace = std::chrono::milliseconds(400);
    /// The same if the job has ended well, so that its processes end by themselves.
    Duration orderly_grace = std::chrono::seconds(1);
    /// Time after an end request within which the coordinator must send an event, to show that it
    /// does not hang. Zero: no limit, for a coordinator that computes itself.
    Duration answer = std::chrono::milliseconds(1500);
    /// Delays before a lost process is started again for the first time, the second time, and so
    /// on; the last one applies to all later times.
    std::vector<Duration> restart_delays{std::chrono::milliseconds(500), std::chrono::seconds(2),
                                         std::chrono::seconds(5)};
    /// Set if the processes after the first are programs of the user: they may continue after the
    /// job has ended well, and their ends are reported here. The caller owns it.
    ProgramEnds* programs = nullptr;
    /// Time within which a program that handles SIGTERM itself must end.
    Duration handling = std::chrono::seconds(10);
    /// A coordinator that a signal has stopped for this time is reported.
    Duration stop = std::chrono::minutes(1);
  };

  struct Result {
    int exit_status = 0;
    std::string failure;  ///< the first process that failed, and its end; empty: none
  };

  Supervisor(Options options, Watcher& watcher);

  /// Errors: Error if a process cannot be started; the exceptions of `watcher`. The started
  /// processes then die with this process.
  Result run();

 private:
  /// A descriptor and the function that reads it when it is readable.
  struct Source {
    int descriptor;
    std::function<bool()> read;  ///< false at the end of the data
  };

  void start(std::size_t index);
  void restart_after_delay(const JobEnd::Failure& loss);
  void restart_lost();
  void try_to_start(std::size_t index);
  [[noreturn]] void become_child(std::size_t index, pid_t parent, Pipe output);
  void add_lines(Descriptor from, std::function<void(std::string_view)> sink);
  void wait_for_something();
  void take_signals();
  void terminate();
  std::size_t signal_handlers(int signal) const;
  void close_output();
  void reap();
  bool reports_its_end(int wait_status) const;
  void ended(std::size_t index, int wait_status);
  void act(JobEnd::Action action);
  void ask();
  void request_end();
  void give_up();
  void end_programs();
  void end_processes();
  void check_answer();
  void look_for_stop();
  void on_event(std::string_view line);
  void pass_grace();
  Duration grace() const;
  void kill_all();
  void kill_restarted();
  void signal(std::size_t index, int signal) { groups_[index].signal(signal); }
  bool something_is_left() const;
  void end_leftovers();
  std::string describe(const JobEnd::Failure& failure) const;

  Options options_;
  Watcher& watcher_;
  JobEnd end_;
  SignalInbox signals_;
  Timer grace_;
  Timer handling_;        ///< of SIGTERM, by the programs themselves
  int asked_by_ = 0;      ///< the user's signal; 0: none
  bool handles_ = false;  ///< programs have received SIGTERM
  bool gave_up_ = false;  ///< the coordinator does not answer
  Timer answer_;
  Timer restart_;
  Timer glance_;                               ///< for checks of the coordinator's state
  unsigned stopped_before_ = 0;                ///< checks in a row that found it stopped
  std::vector<JobEnd::Failure> lost_;          ///< processes that are started again
  std::uint64_t events_ = 0;                   ///< lines so far
  std::optional<std::uint64_t> events_asked_;  ///< `events_` soon after the request to end
  Timer refresh_;
  std::vector<ProcessGroup> groups_;  ///< of the children, by their indices
  std::vector<Source> sources_;
};

/// Shows a running job and its end.
class JobView : public Watcher {
 public:
  /// Every process has ended. `exit_status` is that of the job. `failure` describes the first
  /// process that failed; it is empty if none failed.
  virtual void ended(int exit_status, const std::string& failure) = 0;
};

/// Opens the view of a job of this configuration. The library itself writes to no terminal.
using OpenView = std::function<std::unique_ptr<JobView>(const TrainConfig& config)>;

/// Starts the processes of a training job, shows them in `view` until they have ended, and returns
/// the exit status of the job.
///
/// Processes log to the view, under their names. A process that fails reports the error to the
/// coordinator, which reports it to the view by a `failed` event. SIGTERM asks the coordinator to
/// end the job after the current round. The first SIGTERM after the job, while this process ends,
/// has no effect (`pass_over_next_requests`).
///
/// Errors: InternalError if this process has more than one thread; Error if a process cannot
///         be started.
int run_watched(Supervisor::Options job, log::Verbosity verbosity, JobView& view);

}  // namespace syncopate
