#include "report/scoreboard.hpp"

#include <algorithm>

namespace syncopate {

std::optional<double> Scoreboard::last_accuracy() const {
  return results_.empty() ? std::nullopt : std::optional(results_.back().accuracy);
}

std::optional<double> Scoreboard::best_accuracy() const {
  const auto best =
      std::max_element(results_.begin(), results_.end(),
                       [](const auto& a, const auto& b) { return a.accuracy < b.accuracy; });
  return best == results_.end() ? std::nullopt : std::optional(best->accuracy);
}

std::optional<double> Scoreboard::time_to_target_seconds() const {
  if (!target_) {
    return std::nullopt;
  }
  const auto confirmed = std::adjacent_find(
      results_.begin(), results_.end(), [&](const auto& first, const auto& next) {
        return first.accuracy >= *target_ && next.accuracy >= *target_;
      });
  return confirmed == results_.end() ? std::nullopt : std::optional(confirmed->training_seconds);
}

}  // namespace syncopate
