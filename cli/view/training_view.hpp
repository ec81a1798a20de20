#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/view/job_state.hpp"
#include "cli/view/view.hpp"

namespace syncopate::cli {

/// What all views share: the state of the job, made of its events.
class TrainingView : public View {
 public:
  explicit TrainingView(TrainConfig config) : state_{.config = std::move(config)} {}

  void event(std::string_view line) override;
  void output(std::string_view process, std::string_view line) override;
  void notice(std::string_view text) override;
  std::optional<std::string> error() const override;

 protected:
  const JobState& state() const { return state_; }
  void print_summary();

 private:
  /// An event that `state` has taken in, and the line that it came as.
  virtual void show(const events::Event& event, std::string_view line) = 0;
  /// A line for standard error.
  virtual void show_log(const std::string& line) = 0;

  JobState state_;
};

}  // namespace syncopate::cli
