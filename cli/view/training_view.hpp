#pragma once

#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/view/job_state.hpp"
#include "cli/view/terminal.hpp"
#include "job/launch/supervisor.hpp"

namespace syncopate::cli {

/// Makes the view for the options and the terminal: JSON lines; a picture that is redrawn in place;
/// or plain lines if standard output is no terminal or `--quiet` is set.
std::unique_ptr<JobView> make_view(const TrainConfig& config, const OutputOptions& options);

/// The base of all views. It builds the state of the job from its events.
class TrainingView : public JobView {
 public:
  explicit TrainingView(TrainConfig config) : state_{.config = std::move(config)} {}

  void event(std::string_view line) override;
  void output(std::string_view process, std::string_view line) override;
  void notice(std::string_view text) override;
  /// Prints the final figures, or the reason for their absence: that of the coordinator, else
  /// `failure`.
  void ended(int exit_status, const std::string& failure) override;
  bool output_closed() const override { return out_.is_closed(); }

 protected:
  // A view never waits for its reader, because the supervisor must continue.
  LineWriter& out() { return out_; }
  LineWriter& err() { return err_; }
  const JobState& state() const { return state_; }
  void print_summary();

 private:
  /// Shows an event that `state` already includes. `line` is its text.
  virtual void show(const events::Event& event, std::string_view line) = 0;
  /// Shows a line for standard error.
  virtual void show_log(const std::string& line) = 0;
  /// Prints the final figures if the job has some.
  virtual void finish() = 0;
  /// Called when the same programs begin another training.
  virtual void finish_one_of_several() { finish(); }

  JobState state_;
  std::set<std::string, std::less<>> notices_;  ///< so far
  LineWriter out_{STDOUT_FILENO};
  LineWriter err_{STDERR_FILENO};
};

}  // namespace syncopate::cli
