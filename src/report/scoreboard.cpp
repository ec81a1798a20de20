#include "report/scoreboard.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncopate {

using Json = nlohmann::ordered_json;

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
        return first.accuracy >= *target_ && next.accuracy >= *target_ &&
               next.samples > first.samples;  // a second test of one model confirms nothing
      });
  return confirmed == results_.end() ? std::nullopt : std::optional(confirmed->training_seconds);
}

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const EvaluationResult& result) {
  return {{"round", result.round},
          {"samples", result.samples},
          {"epoch", result.epoch},
          {"training_seconds", result.training_seconds},
          {"accuracy", result.accuracy},
          {"loss", result.loss},
          {"evaluation_seconds", result.evaluation_seconds},
          {"batch_norm", result.batch_norm.empty() ? Json(nullptr) : Json(result.batch_norm)}};
}

EvaluationResult evaluation_from(const Json& object) {
  const auto number = [&](const char* name) {
    const Json& value = object.at(name);
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  const Json batch_norm = object.value("batch_norm", Json());
  return {.round = object.at("round"),
          .samples = object.at("samples"),
          .epoch = number("epoch"),
          .training_seconds = number("training_seconds"),
          .accuracy = number("accuracy"),
          .loss = number("loss"),
          .evaluation_seconds =
              object.contains("evaluation_seconds") ? number("evaluation_seconds") : 0,
          .batch_norm = batch_norm.is_null() ? "" : batch_norm.get<std::string>()};
}

}  // namespace syncopate
