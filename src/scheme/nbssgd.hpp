#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collective/group.hpp"
#include "config/option_values.hpp"
#include "scheme/averaging.hpp"
#include "scheme/nbssgd_rounds.hpp"
#include "scheme/scheme.hpp"
#include "scheme/server_scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Non-blocking synchronous SGD (He 2021; He & Dube 2022). A batch is divided into M mini-batches,
/// whose gradients a worker accumulates. The first worker that completes a batch (`SignalRule`)
/// signals all others; each contributes its finished mini-batches, and the model takes a step:
///
///     w_{t+1} = optimizer(w_t, Σ n_i g_i / N)
///
/// with g_i the mean gradient of worker i over the n_i samples that it contributes to round t, and
/// N = Σ n_i. The learning rate of a step depends on the samples of all rounds before it, so it is
/// the same on every replica.
///
/// With a barrier each worker finishes its current mini-batch, contributes, and waits for the
/// allreduce: staleness is 0. With overlap a worker contributes its finished mini-batches, possibly
/// none (n_i = 0), computes on, and applies the steps of all rounds that have ended between two
/// mini-batches. The staleness of a mini-batch is the number of rounds that ended while it was
/// computed, and one more where the allreduce takes longer than the mini-batch. Replicas take the
/// same steps in the same order, and are equal to the last bit after each.
///
/// Buffers are averaged with the same weights as gradients; a replica keeps the changes of its
/// buffers since it contributed them.
class Nbssgd : public AveragingScheme, public HasRounds {
 public:
  struct Options {
    Averaging::Options averaging{};
    NbssgdRounds::Options rounds{};
    std::uint64_t samples_done = 0;  ///< of all workers, before this run
    /// The learning rate after that many samples of the job.
    std::function<double(std::uint64_t samples)> learning_rate{};
  };

  /// `group` and the server outlive this.
  Nbssgd(Group& group, const Options& options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.rounds.batch.size(); }
  void restart(const std::vector<std::uint32_t>& /*periods*/, Rank /*self*/) override {
    averaging_.restart();
  }
  std::optional<SyncRound> leave(Replica& replica) override;

 private:
  void await_result(Replica& replica, Outcome& outcome);
  Duration take_results(Replica& replica, Outcome& outcome);
  void step(Replica& replica, const NbssgdRound& round);

  const Clock& clock_;
  Options options_;
  std::uint64_t samples_;
  NbssgdRounds rounds_;  ///< last: its tasks end before the objects that they use
};

/// When a round of nbssgd ends for a worker that has contributed to it.
enum class Commit {
  barrier,  ///< when the allreduce is complete; the worker waits for it
  overlap,  ///< when the allreduce is complete; the worker computes meanwhile
  racy,     ///< at once: the worker adds its contribution to shared memory, or a server applies it
};
constexpr auto names_of(Commit) {
  return std::to_array<Named<Commit>>(
      {{"barrier", Commit::barrier}, {"overlap", Commit::overlap}, {"racy", Commit::racy}});
}

constexpr auto names_of(SignalRule) {
  return std::to_array<Named<SignalRule>>(
      {{"contribution", SignalRule::contribution}, {"batch", SignalRule::batch}});
}

namespace option {

inline constexpr Option<std::uint32_t> mini_batches{.name = "mini-batches",
                                                    .group = option_group::synchronization,
                                                    .value = "N",
                                                    .help = "mini-batches in a batch of nbssgd",
                                                    .initial = 8,
                                                    .limits = step_counts};

inline constexpr Option<SignalRule> signal{
    .name = "signal",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "when a worker of nbssgd ends a round; contribution: its mini-batches since the last "
        "round amount to a batch; batch: its current batch ends",
    .initial = SignalRule::contribution};

inline constexpr Option<Commit> commit{
    .name = "commit",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "how nbssgd ends a round: wait for its allreduce, compute during it, or update one model "
        "without rounds",
    .initial = Commit::overlap};

}  // namespace option

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
class RacyNbssgd : public Scheme, public HasPending, public KnowsPositions {
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
class RacyServerNbssgd : public ServerScheme, public HasPending {
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
