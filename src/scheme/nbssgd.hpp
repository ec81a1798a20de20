#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "scheme/averaging.hpp"
#include "scheme/nbssgd_rounds.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// Non-blocking synchronous SGD (He 2021; He & Dube 2022). A batch is cut into M mini-batches, whose
/// gradients a worker adds up. The first worker with a batch (`SignalRule`) signals all others; each
/// contributes what it has, and the model takes a step:
///
///     w_{t+1} = optimizer(w_t, Σ n_i g_i / N)
///
/// with g_i the mean gradient of worker i over the n_i samples that it contributes to round t, and
/// N = Σ n_i. The learning rate of the step is that after the samples of the rounds before, so it is
/// the same on every replica.
///
/// With a barrier each worker finishes the mini-batch that it is in, contributes, and awaits the
/// allreduce: staleness is 0. With overlap a worker contributes the mini-batches that it has finished,
/// which may be none (n_i = 0), computes on, and takes the steps of all rounds that have ended between
/// two mini-batches. Its mini-batch is as stale as rounds ended while it was computed, and one more
/// where the allreduce takes longer than that. Replicas take the same steps in the same order, and are
/// alike to the last bit after each.
///
/// Buffers are averaged with the gradients, weighted alike; a replica keeps what its own have gained
/// since they were contributed.
class Nbssgd : public Scheme {
 public:
  struct Options {
    Averaging::Options averaging{};
    NbssgdRounds::Options rounds{};
    std::uint64_t samples_done = 0;  ///< by all workers, before this one's first step
    /// After so many samples of the job.
    std::function<double(std::uint64_t samples)> learning_rate{};
  };

  /// `group` and the server outlive this.
  Nbssgd(Group& group, const Options& options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.rounds.batch.size(); }
  std::string aggregate() const override { return averaging_.aggregate(); }
  CompressionStats compression() const override { return averaging_.compression(); }
  std::map<std::string, OptimizerState> worker_states() const override {
    return averaging_.worker_states();
  }
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override {
    averaging_.load_worker_states(states);
  }
  void restart() override { averaging_.restart(); }
  std::optional<SyncRound> leave(Replica& replica) override;

 private:
  void await_result(Replica& replica, Outcome& outcome);
  Duration take_results(Replica& replica, Outcome& outcome);
  void step(Replica& replica, const NbssgdRound& round);

  const Clock& clock_;
  Options options_;
  Averaging averaging_;
  std::uint64_t samples_;
  NbssgdRounds rounds_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
