#pragma once

#include <optional>

#include "report/events.hpp"
#include "spec/config.hpp"

namespace syncopate::cli {

/// The state of a job: its configuration, and the last event of each kind.
struct JobState {
  TrainConfig config;
  std::optional<events::Started> started = {};
  std::optional<events::Status> status = {};
  bool has_had_loss = false;  ///< before the first loss, NaN means that there is none yet
  std::optional<EvaluationResult> evaluation = {};
  std::optional<double> best_accuracy = {};
  std::optional<events::Finished> finished = {};
  std::optional<events::Failed> failed = {};

  void apply(const events::Event& event);

  /// Seconds of training clock until the first limit of the configuration, at the speed so far.
  /// Empty while the speed is unknown.
  std::optional<double> remaining_seconds() const;
};

}  // namespace syncopate::cli
