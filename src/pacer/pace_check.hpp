#pragma once

#include <optional>
#include <span>
#include <string>

namespace syncopate {

/// The cost of emulating one worker's device on this machine.
struct PaceCost {
  std::string device;      ///< as messages name it: "worker 2 (gpu-old)"
  double cpu_seconds = 0;  ///< measured, of one mini-batch
  /// The device's profile allows it this time, at the current time scale. Above 0.
  double budget_seconds = 0;
};

/// Checks whether a machine with `cores` cores can emulate all these devices at once.
///
/// A mini-batch must take at most 95 % of its budget, or the worker runs late at the first
/// disturbance. All workers together may use 90 % of the cores: Σ cost / budget ≤ 0.9 · cores. The
/// rest is for the coordinator, the evaluator and the system.
///
/// Returns nothing if it can, else one line with the figures and the smallest time scale, rounded
/// up to two digits, with which it could. The budgets include `time_scale`.
std::optional<std::string> pace_objection(std::span<const PaceCost> costs, unsigned cores,
                                          double time_scale);

}  // namespace syncopate
