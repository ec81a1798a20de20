#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "collective/group.hpp"
#include "scheme/gradient_sum.hpp"
#include "scheme/round_book.hpp"
#include "scheme/scheme.hpp"
#include "scheme/shared_meetings.hpp"
#include "scheme/shared_model.hpp"
#include "scheme/signals.hpp"

namespace syncopate {

/// NBSSGD without meetings (`--commit racy`; rounds as in `Nbssgd`): what a worker contributes is a
/// step of its own optimizer, which it adds to one vector of parameters in shared memory as it comes,
/// value by value and without a lock, and it goes on from what that vector then holds.
///
/// The gradient of a step is Σ n_k g_k / b over its mini-batches, with b the mean batch of all workers:
/// so every sample counts the same, and a whole batch as much as one of ssgd. With uniform weights it
/// is their mean, Σ n_k g_k / Σ n_k.
class RacyNbssgd : public Scheme {
 public:
  struct Options {
    BatchCut batch{};             ///< this worker's
    double mean_batch = 64;       ///< b; 0: uniform weights
    SharedModel::Counts start{};  ///< when this worker began
    /// When that many have entered the model since, this worker leaves.
    std::uint64_t samples_to_do = std::numeric_limits<std::uint64_t>::max();
  };

  /// `group` and `model` outlive this. The replica holds the shared parameters already.
  RacyNbssgd(Group& group, SharedModel& model, const Options& options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.batch.size(); }
  /// Takes the shared parameters, and the mean of all buffers, as they are at the end.
  std::optional<Meeting> leave(Replica& replica) override;
  /// The replica has the shared parameters after each step; its buffers are its own.
  ModelParts model(Replica& replica) const override;

 private:
  Outcome commit(Replica& replica, const StepFacts& facts);
  void step(Replica& replica);
  void read(Replica& replica);
  Meeting meeting(const StepFacts& facts);

  Group& group_;
  SharedModel& model_;
  Options options_;
  Signals signals_;
  RoundBook book_;
  GradientSum sum_;
  double loss_sum_ = 0;  ///< over the same mini-batches
  SharedMeetings meetings_;
  std::uint64_t samples_done_ = 0;      ///< of all workers, since this one began
  std::uint64_t read_at_;               ///< updates when the parameters were read
  std::vector<float> before_;           ///< the parameters before a step
  mutable std::vector<float> buffers_;  ///< the mean of all workers'
};

}  // namespace syncopate
