#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "config/option_values.hpp"
#include "scheme/averaging.hpp"
#include "scheme/nbssgd_rounds.hpp"
#include "scheme/round_tracker.hpp"
#include "scheme/scheme.hpp"

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
class Nbssgd : public AveragingScheme {
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
  void restart() override { averaging_.restart(); }
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

}  // namespace syncopate
