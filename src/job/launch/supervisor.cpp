#include "job/launch/supervisor.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "base/end_request.hpp"
#include "base/errors.hpp"
#include "base/log.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/line_source.hpp"
#include "job/launch/process_group.hpp"
#include "report/events.hpp"

namespace syncopate {
namespace {

/// A coordinator that ends takes up to 2 s to close its connections.
constexpr Duration longest_pause_of_events = std::chrono::milliseconds(2500);
/// Number of checks that must find the coordinator stopped before a notice reports it.
constexpr unsigned glances_of_stop = 4;

std::vector<bool> losses_allowed(const std::vector<Child>& children) {
  std::vector<bool> allowed;
  for (const Child& child : children) {
    allowed.push_back(child.may_be_lost);
  }
  return allowed;
}

std::vector<unsigned> restarts_of(const std::vector<Child>& children) {
  std::vector<unsigned> restarts;
  for (const Child& child : children) {
    restarts.push_back(child.restarts);
  }
  return restarts;
}

/// Redirects standard input to /dev/null, standard output and error to `output`.
void redirect(int output) {
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.get() < 0) {
    throw_system_error("open /dev/null for the standard input of a process");
  }
  if (::dup2(nothing.get(), STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0) {
    throw_system_error("redirect the output of a process");
  }
}

}  // namespace

Supervisor::Supervisor(Options options, Watcher& watcher)
    : options_(std::move(options)),
      watcher_(watcher),
      end_(losses_allowed(options_.children), restarts_of(options_.children),
           options_.programs != nullptr),
      signals_(options_.programs != nullptr) {}

Supervisor::Result Supervisor::run() {
  std::optional<AdoptedOrphans> orphans;
  if (options_.programs != nullptr) {
    orphans.emplace();
  }
  for (std::size_t index = 0; index < options_.children.size(); ++index) {
    start(index);
  }
  for (Child& child : options_.children) {
    child.alone.clear();
  }
  add_lines(std::move(options_.events), [this](auto line) { on_event(line); });
  refresh_.repeat(watcher_.refresh_period());
  glance_.repeat(options_.stop / glances_of_stop);
  while (!end_.all_ended()) {
    wait_for_something();
  }
  if (end_.exit_status() != exit_status::success) {
    end_leftovers();
  }
  for (const Source& source : sources_) {
    source.read();  // the output before the end
  }
  const auto failure = end_.first_failure();
  return {end_.exit_status(), failure && !gave_up_ ? describe(*failure) : ""};
}

void Supervisor::start(std::size_t index) {
  std::fflush(nullptr);  // otherwise the child would print the pending output again
  Pipe output = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw_system_error("start a process");
  }
  if (pid == 0) {
    become_child(index, parent, std::move(output));
  }
  groups_.resize(std::max(groups_.size(), index + 1));
  groups_[index] = ProcessGroup(pid);
  add_lines(std::move(output.read),
            [this, index](auto line) { watcher_.output(options_.children[index].name, line); });
}

void Supervisor::become_child(std::size_t index, pid_t parent, Pipe output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(exit_status::failure);  // the parent died before the line above
  }
  ProcessGroup::lead();
  signals_.leave_in_child();
  sources_.clear();
  options_.events.close();
  for (std::size_t other = 0; other < options_.children.size(); ++other) {
    if (other != index) {
      options_.children[other].alone.clear();
    }
  }
  const int status = guarded([&] {
    redirect(output.write.get());
    output = {};
    return options_.children[index].body();
  });
  std::fflush(nullptr);
  // `_exit` instead of `exit`: the child must not destroy the parent's objects.
  ::_exit(status);
}

void Supervisor::add_lines(Descriptor from, std::function<void(std::string_view)> sink) {
  const int descriptor = from.get();
  const auto lines = std::make_shared<LineSource>(std::move(from), std::move(sink));
  sources_.push_back({descriptor, [lines] { return lines->read(); }});
}

void Supervisor::wait_for_something() {
  const std::pair<Timer&, std::function<void()>> timers[] = {
      {grace_, [this] { pass_grace(); }},
      {refresh_, [this] { watcher_.refresh(); }},
      {answer_, [this] { check_answer(); }},
      {restart_, [this] { restart_lost(); }},
      {handling_, [this] { act(end_.interrupted()); }},
      {glance_, [this] { look_for_stop(); }},
  };
  std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
  for (const auto& [timer, fired] : timers) {
    waiting.push_back({timer.descriptor(), POLLIN, 0});
  }
  const std::size_t own = waiting.size();
  for (const Source& source : sources_) {
    waiting.push_back({source.descriptor, POLLIN, 0});
  }
  if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
    throw_system_error("wait for the processes of the job");
  }
  std::vector<Source> open;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (waiting[own + i].revents == 0 || sources_[i].read()) {
      open.push_back(std::move(sources_[i]));
    }
  }
  sources_ = std::move(open);
  if (waiting[0].revents != 0) {
    take_signals();
  }
  for (std::size_t i = 1; i < own; ++i) {
    if (waiting[i].revents != 0) {
      timers[i - 1].first.acknowledge();
      timers[i - 1].second();
    }
  }
  if (watcher_.output_closed()) {
    close_output();
  }
}

void Supervisor::on_event(std::string_view line) {
  ++events_;
  if (const auto worker = events::left_in(line)) {
    end_.left(*worker + 1);  // the coordinator is process 0
    return;
  }
  if (gave_up_) {
    return;  // its events now are late, and blame processes that this supervisor has ended
  }
  const auto success = events::end_in(line);
  watcher_.event(line);
  end_.trains(!success);
  const bool goes_on = success == true && options_.programs != nullptr && !end_.was_interrupted();
  if (success && !goes_on) {
    act(end_.reported_end(*success));
  }
}

void Supervisor::pass_grace() {
  for (std::size_t index = 0; index < groups_.size() && end_.succeeded(); ++index) {
    if (end_.is_running(index)) {
      watcher_.notice(fmt::format("{} (process {}) does not end; it is killed",
                                  options_.children[index].name, groups_[index].leader()));
    }
  }
  act(end_.grace_passed());
}

void Supervisor::close_output() {
  if (end_.output_closed() == JobEnd::Action::ask) {
    watcher_.notice("nobody reads the output any more: finishing the round");
    request_end();
  }
}

void Supervisor::take_signals() {
  for (const int signal : signals_.take()) {
    if (signal == SIGWINCH) {
      watcher_.resized();
    } else if (signal == SIGCHLD) {
      reap();
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
      signal_handlers(signal);
    } else if (signal == SIGTERM) {
      asked_by_ = signal;
      terminate();
    } else if (signal != SIGTSTP) {
      asked_by_ = signal;
      handling_.start({});
      act(end_.interrupted());
    }
  }
}

/// The scheduler of a cluster sends SIGTERM before it ends a job. A program that handles it saves
/// its state and ends; the coordinator gets the request when the time for that is over, or at once
/// if no program handles the signal.
void Supervisor::terminate() {
  const bool first = !std::exchange(handles_, true) && !end_.was_interrupted();
  const std::size_t handlers = first && options_.programs != nullptr ? signal_handlers(SIGTERM) : 0;
  if (handlers > 0) {
    watcher_.notice(
        fmt::format("SIGTERM has gone to {} {} for it; the job ends within {} s", handlers,
                    handlers == 1 ? "program with a handler" : "programs with handlers",
                    std::chrono::duration_cast<std::chrono::seconds>(options_.handling).count()));
    handling_.start(options_.handling);
  } else {
    handling_.start({});
    act(end_.interrupted());
  }
}

/// Sends the signal to the programs that handle it. Returns their number.
std::size_t Supervisor::signal_handlers(int signal) const {
  std::size_t handlers = 0;
  for (std::size_t index = 1; index < groups_.size(); ++index) {
    handlers += groups_[index].signal_handlers(signal);
  }
  return handlers;
}

void Supervisor::reap() {
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (const auto wait_status = groups_[index].take_end()) {
      ended(index, *wait_status);
    }
  }
}

/// A process that ended by itself has reported the reason to the coordinator; a killed one has not,
/// nor has a program that left in a way of its own, such as `_exit(7)`.
bool Supervisor::reports_its_end(int wait_status) const {
  if (!WIFEXITED(wait_status)) {
    return false;
  }
  const int status = WEXITSTATUS(wait_status);
  return options_.programs == nullptr || end_.was_interrupted() || status == exit_status::success ||
         status == exit_status::failure || status == exit_status::refused;
}

void Supervisor::ended(std::size_t index, int wait_status) {
  const bool killed_by_us = end_.killed();
  const bool was_killed_late = end_.restarted(index) > 0 && !end_.is_running(0);
  const JobEnd::Action action = end_.ended(index, wait_status);
  const bool unreported = !reports_its_end(wait_status) && !killed_by_us && !was_killed_late;
  if (action == JobEnd::Action::restart) {
    restart_after_delay({index, wait_status});
  } else if (unreported || action == JobEnd::Action::report_loss) {
    watcher_.notice(describe({index, wait_status}));
  }
  act(action);
  if (index == 0) {
    kill_restarted();
  }
  if (index > 0 && options_.programs != nullptr) {
    options_.programs->report({static_cast<std::uint32_t>(index - 1), wait_status});
  }
}

void Supervisor::restart_after_delay(const JobEnd::Failure& loss) {
  const std::vector<Duration>& delays = options_.restart_delays;
  lost_.push_back(loss);
  restart_.start(delays[std::min<std::size_t>(end_.restarted(loss.process), delays.size()) - 1]);
}

void Supervisor::restart_lost() {
  for (const JobEnd::Failure& loss : std::exchange(lost_, {})) {
    const std::size_t index = loss.process;
    if (end_.start_again(index)) {
      watcher_.notice(fmt::format("{}; it is started again ({} of {})", describe(loss),
                                  end_.restarted(index), options_.children[index].restarts));
      try_to_start(index);
    }
  }
}

/// If the system has no room for the process, the job continues without it.
void Supervisor::try_to_start(std::size_t index) {
  try {
    start(index);
  } catch (const Error& error) {
    end_.not_started(index);
    watcher_.notice(fmt::format("{}: {}", options_.children[index].name, error.what()));
  }
}

/// Once the coordinator has ended, a process that was started again may still wait for it, which
/// would delay the end of the job.
void Supervisor::kill_restarted() {
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (end_.restarted(index) > 0) {
      signal(index, SIGKILL);
    }
  }
}

void Supervisor::act(JobEnd::Action action) {
  switch (action) {
    case JobEnd::Action::none:
    case JobEnd::Action::report_loss:
    case JobEnd::Action::restart: break;  // `ended` has printed it, or does so
    case JobEnd::Action::ask: ask(); break;
    case JobEnd::Action::start_grace: grace_.start(grace()); break;
    case JobEnd::Action::kill: kill_all(); break;
    case JobEnd::Action::give_up: give_up(); break;
    case JobEnd::Action::end_programs: end_programs(); break;
  }
}

void Supervisor::ask() {
  watcher_.notice("finishing the round; Ctrl-C again ends at once");
  request_end();
}

void Supervisor::request_end() {
  if (end_.is_running(0)) {
    request_end_of(groups_.front().leader(), asked_by_);
  }
  if (options_.answer > Duration::zero()) {
    answer_.start(options_.answer / 3);
  }
}

/// Events that were on their way at the request are no answer, so the first third of the time does
/// not count. From then on, the coordinator has to send events until it ends.
void Supervisor::check_answer() {
  if (events_asked_ == events_) {
    act(end_.no_answer());
  } else if (end_.is_running(0)) {
    answer_.start(events_asked_ ? longest_pause_of_events : options_.answer - options_.answer / 3);
    events_asked_ = events_;
  }
}

/// Checks if a signal has stopped the coordinator. All processes wait for it, so only the
/// supervisor can report this.
void Supervisor::look_for_stop() {
  const pid_t process = groups_.front().leader();
  stopped_before_ = is_stopped(process) ? stopped_before_ + 1 : 0;
  if (stopped_before_ == glances_of_stop) {
    watcher_.notice(fmt::format(
        "the coordinator (process {}) is stopped by a signal, and the job waits for it: kill -CONT "
        "{} lets it go on, Ctrl-C ends the job",
        process, process));
  }
}

void Supervisor::give_up() {
  gave_up_ = true;
  watcher_.notice(
      fmt::format("the coordinator (process {}) does not answer: the job ends with what its last "
                  "checkpoint has",
                  groups_.front().leader()));
  end_processes();
}

void Supervisor::end_programs() {
  watcher_.notice("ending the programs; Ctrl-C again ends at once");
  end_processes();
}

void Supervisor::end_processes() {
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    signal(index, SIGTERM);
    signal(index, SIGCONT);  // a stopped process receives SIGTERM only after this
  }
  grace_.start(grace());
}

bool Supervisor::something_is_left() const {
  return std::ranges::any_of(groups_, &ProcessGroup::is_alive);
}

/// All children have ended.
void Supervisor::end_leftovers() {
  if (something_is_left() && !end_.killed()) {
    end_processes();
  }
  while (something_is_left()) {
    wait_for_something();
  }
}

Duration Supervisor::grace() const {
  if (!end_.is_urgent()) {
    return options_.grace;
  }
  return std::min(options_.grace,
                  end_.succeeded() ? options_.orderly_grace : options_.requested_grace);
}

void Supervisor::kill_all() {
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    signal(index, SIGKILL);
  }
}

std::string Supervisor::describe(const JobEnd::Failure& failure) const {
  return fmt::format("{} (process {}) {}", options_.children[failure.process].name,
                     groups_[failure.process].leader(), describe_end(failure.wait_status));
}

namespace {

/// The number of threads that a fork permits: this one, and those of OpenBLAS, which ends them
/// before a fork and starts them again at its next call.
std::size_t allowed_threads() {
  using ThreadCount = int (*)();
  const auto count =
      reinterpret_cast<ThreadCount>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count == nullptr ? 1 : static_cast<std::size_t>(std::max(1, count()));
}

/// A forked process would inherit the locks of other threads without the threads.
void check_single_thread() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  const auto threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  if (threads > allowed_threads()) {
    throw InternalError(
        fmt::format("{} threads run where the processes of a job are forked", threads));
  }
}

/// Logs of a child go to its standard error; the supervisor puts the name of the child before each
/// line.
void set_up_log(Child& child, log::Verbosity verbosity) {
  child.body = [verbosity, body = std::move(child.body)] {
    log::set_up(verbosity);
    return body();
  };
}

}  // namespace

int run_watched(Supervisor::Options job, log::Verbosity verbosity, JobView& view) {
  check_single_thread();
  for (Child& child : job.children) {
    set_up_log(child, verbosity);
  }
  const Supervisor::Result result = [&] {
    Supervisor supervisor(std::move(job), view);
    const Supervisor::Result ended = supervisor.run();
    pass_over_next_requests();  // before the supervisor lets go of the signals
    return ended;
  }();
  view.ended(result.exit_status, result.failure);
  return result.exit_status;
}

}  // namespace syncopate
