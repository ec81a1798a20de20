#include "cli/view/job_state.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace syncopate::cli {
namespace {

struct Apply {
  JobState& state;

  /// Programs may have set options that the command line did not.
  void operator()(const events::Started& event) {
    state = {.config = state.config, .started = event};  // programs may train several times
    if (event.epochs >= open_end) {
      state.config.scheme = event.scheme;
      state.config.run_dir = event.run_dir;
    }
  }
  void operator()(const events::Status& event) {
    state.status = event;
    state.has_had_loss = state.has_had_loss || std::isfinite(event.loss);
  }
  void operator()(const EvaluationResult& event) {
    state.evaluation = event;
    state.best_accuracy = std::max(event.accuracy, state.best_accuracy.value_or(0));
  }
  void operator()(const events::Checkpoint&) {}
  void operator()(const events::Note&) {}
  void operator()(const events::Finished& event) { state.finished = event; }
  void operator()(const events::Failed& event) { state.failed = event; }
};

/// Seconds until `done` reaches `whole`, when `seconds` have passed so far.
double seconds_until(double whole, double done, double seconds) {
  return std::max(0.0, whole - done) * seconds / done;
}

/// The smallest step count of a worker.
double least_steps(const events::Status& status) {
  const auto least = std::min_element(
      status.workers.begin(), status.workers.end(),
      [](const auto& left, const auto& right) { return left.steps < right.steps; });
  return least == status.workers.end() ? 0 : static_cast<double>(least->steps);
}

}  // namespace

void JobState::apply(const events::Event& event) {
  std::visit(Apply{*this}, event);
}

std::optional<double> JobState::remaining_seconds() const {
  const bool has_end = config.epochs < open_end;
  if (!has_end || !status || status->epoch <= 0 || status->training_seconds <= 0) {
    return std::nullopt;
  }
  const double seconds = status->training_seconds;
  double remaining = seconds_until(config.epochs, status->epoch, seconds);
  if (config.max_time) {
    remaining = std::min(remaining, std::max(0.0, *config.max_time - seconds));
  }
  if (const double steps = least_steps(*status); config.max_steps && steps > 0) {
    const auto most = static_cast<double>(*config.max_steps);
    remaining = std::min(remaining, seconds_until(most, steps, seconds));
  }
  return remaining;
}

}  // namespace syncopate::cli
