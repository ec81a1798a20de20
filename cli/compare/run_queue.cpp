#include "cli/compare/run_queue.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/errors.hpp"
#include "job/launch/exit_status.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

constexpr Duration refresh_every = std::chrono::milliseconds(500);

[[noreturn]] void fail(const Run& run, const TrainProcess& process) {
  const std::string why = process.last_words().empty()
                              ? fmt::format("it ended with exit status {}", process.exit_status())
                              : process.last_words();
  const std::string message = fmt::format("run {}: {}", run.name(), why);
  if (process.exit_status() == exit_status::refused) {
    throw ConfigError(message);
  }
  throw Error(message);
}

}  // namespace

std::vector<RunFigures> RunQueue::carry_out(const std::vector<Run>& runs, std::size_t width) {
  std::for_each(runs.begin(), runs.end(), [this](const Run& run) { look_up(run); });
  refresh_.repeat(refresh_every);
  while (!waiting_.empty() || !active_.empty()) {
    while (!waiting_.empty() && active_.size() < width) {
      start(waiting_.front());
      waiting_.pop_front();
    }
    wait_for_something();
  }
  refresh_.repeat({});
  std::vector<RunFigures> figures;
  for (const Run& run : runs) {
    figures.push_back(options_.folders.figures(run, options_.plan.target).value());
  }
  return figures;
}

void RunQueue::look_up(const Run& run) {
  if (const auto figures = options_.folders.figures(run, options_.plan.target)) {
    if (!reported_.contains(run.name())) {
      options_.forecast.ended(options_.workload(run), run.virtual_time, std::nullopt);
      report(run, *figures, true);
    }
  } else {
    waiting_.push_back(run);
  }
}

void RunQueue::start(const Run& run) {
  options_.folders.prepare(run, options_.plan.config_of(run));
  active_.push_back({.run = run,
                     .process = std::make_unique<TrainProcess>(options_.folders.config(run),
                                                               options_.folders.run(run), signals_),
                     .begun = steady_now()});
  show_progress();
}

void RunQueue::wait_for_something() {
  std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0},
                              {refresh_.descriptor(), POLLIN, 0}};
  for (const Active& active : active_) {
    waiting.push_back({active.process->output(), POLLIN, 0});
    waiting.push_back({active.process->errors(), POLLIN, 0});
  }
  if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
    throw_system_error("wait for the runs");
  }
  for (const Active& active : active_) {
    active.process->read();
  }
  heed_signals();
  if (waiting[1].revents != 0) {
    refresh_.acknowledge();
    show_progress();
  }
}

void RunQueue::heed_signals() {
  for (const int signal : signals_.take()) {
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
      throw Cancelled("interrupted; finished runs are kept; continue with\n" +
                      options_.how_to_go_on);
    }
  }
  // Checks all runs after any signal, because one signal may report several ends.
  std::vector<Active> ended;
  std::erase_if(active_, [&](Active& active) {
    const bool over = active.process->has_ended();
    if (over) {
      ended.push_back(std::move(active));
    }
    return over;
  });
  std::for_each(ended.begin(), ended.end(), [this](const Active& one) { conclude(one); });
}

void RunQueue::conclude(const Active& ended) {
  const Run& run = ended.run;
  const TrainProcess& process = *ended.process;
  if (process.exit_status() == exit_status::failure && process.diverged()) {
    options_.folders.note_divergence(run, process.last_words());
  } else if (process.exit_status() != exit_status::success) {
    fail(run, process);
  }
  const auto figures = options_.folders.figures(run, options_.plan.target);
  if (!figures) {
    fail(run, process);
  }
  const double seconds = to_seconds(steady_now() - ended.begun);
  options_.forecast.ended(options_.workload(run), run.virtual_time,
                          process.diverged() ? std::nullopt : std::optional(seconds));
  report(run, *figures, false);
  show_progress();
}

void RunQueue::report(const Run& run, const RunFigures& figures, bool earlier) {
  reported_.insert(run.name());
  options_.progress.ended(run, figures, earlier);
}

void RunQueue::show_progress() {
  if (active_.empty()) {
    return;
  }
  Workload done;
  std::string what;
  for (const Active& active : active_) {
    const double epochs = options_.plan.contestant(active.run.contestant).config.epochs;
    const Workload work = options_.workload(active.run);
    if (active.run.virtual_time) {
      done.samples += work.samples * std::min(1.0, active.process->epoch() / epochs);
    } else {
      done.training_seconds += std::min(work.training_seconds, active.process->training_seconds());
    }
    what += fmt::format("{}{} at epoch {:.2f} of {}", what.empty() ? "" : ", ", active.run.name(),
                        active.process->epoch(), epochs);
  }
  options_.progress.under_way(what, options_.forecast.remaining(done));
}

}  // namespace syncopate::cli
