#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace syncopate {

/// The result of a test of the model, with the moment at which its snapshot was taken.
struct EvaluationResult {
  std::uint64_t round = 0;
  std::uint64_t samples = 0;  ///< trained on before the snapshot
  double epoch = 0;
  double training_seconds = 0;    ///< training clock
  double accuracy = 0;            ///< share of the test set, in [0, 1]
  double loss = 0;                ///< mean over the test set
  double evaluation_seconds = 0;  ///< duration of the test
  std::string batch_norm = {};    ///< statistics: running, recomputed; empty without BatchNorm
};

/// The evaluations of a run, and whether they reach its target.
class Scoreboard {
 public:
  explicit Scoreboard(std::optional<double> target_accuracy) : target_(target_accuracy) {}

  void add(const EvaluationResult& result) { results_.push_back(result); }

  const std::vector<EvaluationResult>& results() const { return results_; }
  std::optional<double> last_accuracy() const;
  std::optional<double> best_accuracy() const;

  /// Time to accuracy: the training clock of the first evaluation that reaches the target and whose
  /// next one, of a model trained on more samples, reaches it, too. Empty while there is none, or
  /// without a target.
  std::optional<double> time_to_target_seconds() const;

 private:
  std::optional<double> target_;
  std::vector<EvaluationResult> results_;
};

nlohmann::ordered_json to_json(const EvaluationResult& result);
/// Reads the result of `to_json`; null, which stands for a number that is not finite, becomes NaN.
/// Lines of older versions lack the duration of the test and its BatchNorm statistics.
EvaluationResult evaluation_from(const nlohmann::ordered_json& object);
nlohmann::ordered_json or_null(std::optional<double> value);

}  // namespace syncopate
