#pragma once

#include <optional>
#include <span>
#include <string>

namespace syncopate {

/// What emulating one worker's device costs this machine.
struct PaceCost {
  std::string device;      ///< as messages name it: "worker 2 (gpu-old)"
  double cpu_seconds = 0;  ///< measured, of one mini-batch
  double budget_seconds =
      0;  ///< that the device's profile allows it, at the current time scale; above 0
};

/// Whether a machine with `cores` cores can pace these devices, all at once.
///
/// A worker must be done within 95 % of its budget, or it would run late at the first disturbance,
/// and all of them together may use 90 % of the cores: Σ cost / budget ≤ 0.9 · cores. What is left
/// is for the coordinator, the evaluator and the system.
///
/// Returns nothing when it can, else one line with the figures and the smallest time scale, rounded
/// up to two digits, with which it could. `time_scale` is the one that the budgets include.
std::optional<std::string> pace_objection(std::span<const PaceCost> costs, unsigned cores,
                                          double time_scale);

}  // namespace syncopate
