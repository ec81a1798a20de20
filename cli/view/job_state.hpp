#pragma once

#include <optional>

#include "job/spec/config.hpp"
#include "report/events.hpp"

namespace syncopate::cli {

/// What is known of a job: its configuration, and the last word of each kind of event.
struct JobState {
  TrainConfig config;
  std::optional<events::Started> started = {};
  std::optional<events::Status> status = {};
  std::optional<EvaluationResult> evaluation = {};
  std::optional<double> best_accuracy = {};
  std::optional<events::Finished> finished = {};
  std::optional<events::Failed> failed = {};

  void apply(const events::Event& event);

  /// Seconds of training clock until the nearest of the configuration's limits, at the speed so
  /// far. Empty before there is a speed.
  std::optional<double> remaining_seconds() const;
};

}  // namespace syncopate::cli
