#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncopate {

/// A test of the global model, stamped with the moment at which its snapshot was taken.
struct EvaluationResult {
  std::uint64_t round = 0;
  std::uint64_t samples = 0;  ///< trained on by then
  double epoch = 0;
  double training_seconds = 0;    ///< training clock
  double accuracy = 0;            ///< share of the test set, in [0, 1]
  double loss = 0;                ///< mean over the test set
  double evaluation_seconds = 0;  ///< that the test took, beside training
  std::string batch_norm = {};    ///< statistics: running, recomputed; empty without BatchNorm
};

/// The evaluations of a run, and what they say about its target.
class Scoreboard {
 public:
  explicit Scoreboard(std::optional<double> target_accuracy) : target_(target_accuracy) {}

  void add(const EvaluationResult& result) { results_.push_back(result); }

  const std::vector<EvaluationResult>& results() const { return results_; }
  std::optional<double> last_accuracy() const;
  std::optional<double> best_accuracy() const;

  /// Time to accuracy: the training clock of the first evaluation that reached the target and was
  /// confirmed by the next one. Empty while there is none, or without a target.
  std::optional<double> time_to_target_seconds() const;

 private:
  std::optional<double> target_;
  std::vector<EvaluationResult> results_;
};

}  // namespace syncopate
