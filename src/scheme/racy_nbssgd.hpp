#pragma once

#include <cstdint>
#include <vector>

#include "collective/group.hpp"
#include "scheme/round_tracker.hpp"
#include "scheme/scheme.hpp"
#include "scheme/server_scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// The pending mini-batches of a worker of NBSSGD without synchronization (`--commit racy`).
/// Contributions are due as in `Nbssgd`, but no worker waits for another's.
class RacyContribution {
 public:
  /// `group` outlives this.
  RacyContribution(Group& group, const BatchCut& batch, SignalRule signal)
      : signals_(group), tracker_(batch, Round{}, signal) {}

  /// Adds a mini-batch with mean gradient `gradient`, of `tensors`. Returns whether the
  /// contribution is due; in that case the other workers have been signalled.
  bool add(std::span<const float> gradient, const GradientSet& tensors, const StepFacts& facts);

  std::uint64_t mini_batches() const { return tracker_.pending(); }
  std::uint64_t samples() const { return accumulator_.samples(); }
  double loss_sum() const { return loss_sum_; }
  /// The tensors that took part in any of its mini-batches.
  const GradientSet& gradients() const { return gradients_; }
  /// The union of the requests of its mini-batches.
  const StepRequests& requests() const { return requests_; }
  /// into = Σ n_k g_k / `divisor`.
  void divided_into(std::span<float> into, double divisor) const {
    accumulator_.divided_into(into, divisor);
  }
  /// The contribution has been applied: returns the status of each of its mini-batches, and begins
  /// the next contribution.
  std::vector<PushStatus> committed(const PushStatus& status);
  /// Discards the contribution and returns the number of its mini-batches.
  std::uint64_t discard();

 private:
  RoundSignals signals_;
  RoundTracker tracker_;
  GradientAccumulator accumulator_;
  double loss_sum_ = 0;
  GradientSet gradients_;
  StepRequests requests_;
};

/// The options of both kinds of racy NBSSGD.
struct RacyOptions {
  BatchCut batch{};  ///< this worker's
  SignalRule signal = SignalRule::contribution;
  double mean_batch = 64;  ///< b, the mean batch of all workers; 0: uniform weights
};

/// Racy NBSSGD in shared memory: a worker contributes a step of its own optimizer. It adds the step
/// to a shared vector of parameters, value by value and without a lock, and continues from the
/// values that the vector then holds.
///
/// The gradient of a step is Σ n_k g_k / b over its mini-batches, with b the mean batch of all
/// workers: every sample counts the same, and a whole batch as much as a batch of ssgd. With
/// uniform weights it is the mean of the mini-batches, Σ n_k g_k / Σ n_k.
class RacyNbssgd : public Scheme {
 public:
  /// `group` and `model` outlive this. The replica holds the shared parameters. `start`: the
  /// counters when this worker began.
  RacyNbssgd(Group& group, SharedModel& model, const RacyOptions& options,
             const SharedModel::Counts& start);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.batch.size(); }
  /// Copies the final shared parameters and the mean of all buffers into the replica.
  std::optional<SyncRound> leave(Replica& replica) override;
  std::uint64_t discard_pending() override { return contribution_.discard(); }
  std::optional<SyncRound> flush_pending(Replica& replica) override;
  void take_replica(Replica& replica, const AllWorkers& workers) override;
  /// The replica has the shared parameters after each step; its buffers are its own.
  ModelParts model(Replica& replica) const override;
  std::vector<WorkerPosition> positions() const override { return model_.positions(); }

 private:
  Outcome commit(Replica& replica, const StepFacts& facts);
  std::uint64_t add_to_model(Replica& replica);
  void step(Replica& replica);
  void read(Replica& replica);

  Group& group_;
  SharedModel& model_;
  RacyOptions options_;
  RacyContribution contribution_;
  SharedModelRounds rounds_;
  std::uint64_t read_at_;               ///< updates at the time when the parameters were read
  WorkerPosition position_{};           ///< of this worker, after its last step
  std::vector<float> before_;           ///< the parameters before a step
  mutable std::vector<float> buffers_;  ///< the mean of the buffers of all workers
};

/// Racy NBSSGD with a parameter server: a worker pushes its contribution, the server applies it at
/// once with its own optimizer, and the worker continues from the model that it pulls. No push
/// waits for another worker's push, and none locks a round.
///
/// A push holds the mean gradient of the contribution, Σ n_k g_k / Σ n_k, with the weight Σ n_k /
/// b, b the mean batch of all workers: every sample counts the same. With uniform weights it weighs
/// 1. Buffers are pushed with the gradient; their mean on the server is evaluated and saved.
class RacyServerNbssgd : public ServerScheme {
 public:
  /// `group` and `server` outlive this. `start`: the server's reply when this worker began.
  RacyServerNbssgd(Group& group, ServerClient& server, const RacyOptions& options,
                   const Reply& start);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.batch.size(); }
  std::uint64_t discard_pending() override { return contribution_.discard(); }
  std::optional<SyncRound> flush_pending(Replica& replica) override;
  void take_replica(Replica& replica, const AllWorkers& workers) override;

 private:
  Outcome commit(Replica& replica);

  RacyOptions options_;
  RacyContribution contribution_;
  std::uint64_t step_;
};

}  // namespace syncopate
