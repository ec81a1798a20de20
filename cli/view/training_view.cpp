#include "cli/view/training_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <utility>

#include "cli/view/live_view.hpp"
#include "cli/view/render.hpp"
#include "job/launch/exit_status.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

/// Time for which a job that has ended waits for the reader of its output.
constexpr Duration patience = std::chrono::seconds(3);

/// Prints events unchanged; the last line is only the summary.
class JsonView : public TrainingView {
 public:
  using TrainingView::TrainingView;

  Duration refresh_period() const override { return {}; }
  void refresh() override {}
  void resized() override {}

 private:
  void show(const events::Event& event, std::string_view line) override {
    if (std::holds_alternative<events::Status>(event)) {
      out().offer(std::string(line) + '\n');
    } else {
      write_line(out(), line);
    }
  }
  void show_log(const std::string& line) override { write_line(err(), line); }
  void finish() override {
    if (state().finished) {
      write_line(out(), json_text(state().finished->summary));
    }
  }
  void finish_one_of_several() override {}  // its last event has the figures
};

/// Prints a line for each evaluation, and status lines at intervals.
class PlainView : public TrainingView {
 public:
  PlainView(TrainConfig config, log::Verbosity verbosity)
      : TrainingView(std::move(config)), verbosity_(verbosity) {}

  Duration refresh_period() const override { return std::chrono::seconds(10); }
  void refresh() override {
    if (!state().status || verbosity_ == log::Verbosity::quiet) {
      return;
    }
    // Skips a line that has not changed since the last refresh.
    if (std::string line = status_line(state()); line != last_) {
      out().offer(line + '\n');
      last_ = std::move(line);
    }
  }
  void resized() override {}

 private:
  void show(const events::Event& event, std::string_view) override {
    if (const auto* started = std::get_if<events::Started>(&event)) {
      progress(started_line(*started));
    } else if (const auto* evaluation = std::get_if<EvaluationResult>(&event)) {
      progress(evaluation_line(*evaluation));
    } else if (const auto* note = std::get_if<events::Note>(&event)) {
      progress(note->text);
    }
  }
  void show_log(const std::string& line) override { write_line(err(), line); }
  void finish() override { print_summary(); }

  void progress(const std::string& line) {
    if (verbosity_ != log::Verbosity::quiet) {
      write_line(out(), line);
    }
  }

  log::Verbosity verbosity_;
  std::string last_;  ///< status line
};

}  // namespace

std::unique_ptr<JobView> make_view(const TrainConfig& config, const OutputOptions& options) {
  if (options.json) {
    return std::make_unique<JsonView>(config);
  }
  const bool redraw = ::isatty(STDOUT_FILENO) == 1 && can_redraw(from_environment);
  if (redraw && options.verbosity != log::Verbosity::quiet) {
    return std::make_unique<LiveView>(config, style_of(from_environment));
  }
  return std::make_unique<PlainView>(config, options.verbosity);
}

void TrainingView::event(std::string_view line) {
  out_.flush();  // events arrive regularly, so a slow reader gets the queued text in time
  err_.flush();
  const events::Event event = events::parse_event(line);
  if (state_.finished && std::holds_alternative<events::Started>(event)) {
    finish_one_of_several();
  }
  state_.apply(event);
  show(event, line);
}

void TrainingView::output(std::string_view process, std::string_view line) {
  show_log(fmt::format("[{}] {}", process, line));
}

void TrainingView::notice(std::string_view text) {
  notices_.emplace(text);
  show_log(fmt::format("syncopate: {}", text));
}

void TrainingView::ended(int status, const std::string& failure) {
  finish();
  const bool complete = out_.finish(patience) && !out_.has_lost();
  if (!complete && !out_.is_closed()) {
    notice("some of the output is lost: it was not read, or could not be written");
  }
  err_.finish(patience);
  const std::string error = state_.failed ? state_.failed->error : failure;
  if (status != exit_status::success && !error.empty() && !notices_.contains(error)) {
    print_error(error.c_str());
  }
}

void TrainingView::print_summary() {
  if (state_.finished) {
    const std::string run_dir = state_.config.run_dir.string();
    write_line(out(), fmt::format("{}", fmt::join(render_summary(state_.finished->summary, run_dir),
                                                  "\n")));
  }
}

}  // namespace syncopate::cli
