#pragma once

#include <vector>

#include "base/time.hpp"
#include "scheme/scheme.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/shared_model.hpp"

namespace syncopate {

/// Hogwild (Recht et al. 2011): all workers of a host read one shared vector of parameters and add
/// their steps to it, value by value and without a lock.
///
/// The replica's own optimizer takes a step, and the worker adds the change to the shared
/// parameters: w += w_i(after) − w_i(before). The gradient is multiplied by its weight before the
/// step, so the state of the optimizer, such as a momentum, is that of scaled gradients. The worker
/// of rank 0 evaluates and saves the shared parameters.
class Hogwild : public Scheme, public SharesModel, public KnowsPositions {
 public:
  struct Options {
    Rank self;
    PushWeight weight{};
    SharedModel::Counts start{};  ///< when this worker began
  };

  /// `model` outlives this. The replica holds the shared parameters.
  Hogwild(const Clock& clock, SharedModel& model, const Options& options)
      : clock_(clock),
        model_(model),
        options_(options),
        rounds_(model, options.start),
        read_at_(options.start.updates) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::vector<WorkerPosition> positions() const override { return model_.positions(); }
  /// Copies the final shared parameters and the mean of all buffers into the replica.
  std::optional<SyncRound> leave(Replica& replica) override;
  void take_replica(Replica& replica, const AllWorkers& workers) override;
  std::optional<SyncRound> fetch(Replica& replica) override;

 private:
  void read(Replica& replica);
  void read_mean_buffers(Replica& replica);

  const Clock& clock_;
  SharedModel& model_;
  Options options_;
  SharedModelRounds rounds_;
  std::uint64_t read_at_;  ///< updates at the time when the parameters were read
  std::vector<float> before_;
};

}  // namespace syncopate
