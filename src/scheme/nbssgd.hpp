#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheme/averaging.hpp"
#include "scheme/background_meeting.hpp"
#include "scheme/gradient_sum.hpp"
#include "scheme/round_book.hpp"
#include "scheme/scheme.hpp"
#include "scheme/signals.hpp"
#include "transport/shared_values.hpp"

namespace syncopate {

/// Non-blocking synchronous SGD (He 2021; He & Dube 2022). A batch is cut into M mini-batches, whose
/// gradients a worker adds up at the same w_t. The first to finish its batch signals all others; each
/// contributes what it has after the mini-batch that it is in, and goes on with the rest of its batch:
///
///     w_{t+1} = optimizer(w_t, Σ n_i g_i / N)
///
/// with g_i the mean gradient of worker i over the n_i samples that it brings to round t, N = Σ n_i.
/// When a worker contributes, and to which round a mini-batch belongs, is its round book's decision.
///
/// Without overlap a worker waits for the sum: for the slowest at most one mini-batch. With overlap it
/// computes on at w_t meanwhile, for the next round: staleness is 1 at most, and nobody waits. When all
/// leave, a last meeting brings in what is left.
///
/// Buffers are averaged with the gradients, weighted alike; what those of a replica have gained while
/// their mean was on its way is kept.
class Nbssgd : public Scheme {
 public:
  struct Options {
    Averaging::Options averaging{};
    Round done{};      ///< rounds that came before, in a run that is resumed
    BatchCut batch{};  ///< this worker's
    bool overlap = true;
  };

  /// `group` and the server outlive this.
  Nbssgd(Group& group, const Options& options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return options_.batch.size(); }
  std::string aggregate() const override { return averaging_.aggregate(); }
  CompressionStats compression() const override { return averaging_.compression(); }
  std::map<std::string, OptimizerState> worker_states() const override {
    return averaging_.worker_states();
  }
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override {
    averaging_.load_worker_states(states);
  }
  void restart() override { averaging_.restart(); }
  std::optional<Meeting> leave(Replica& replica) override;

 private:
  Fate book(Replica& replica, const StepFacts& facts);
  Round depart(Replica& replica);
  Meeting meet(Replica& replica, Spent& spent);
  Meeting return_from(const Averaging::Result& met, Replica& replica, Spent& spent);
  Averaging::Values lent() { return {.model = mean_.all(), .buffers = mean_buffers_}; }

  const Clock& clock_;
  Options options_;
  Averaging averaging_;
  Signals signals_;
  RoundBook book_;
  GradientSum sum_;  ///< of the open round
  Card card_;        ///< likewise
  Card gone_;        ///< with which the replica went to its meeting

  SharedValues mean_;                ///< g_i, and then their mean; lent to the meeting under way
  std::vector<float> gone_buffers_;  ///< with which the replica went to its meeting
  std::vector<float> mean_buffers_;  ///< likewise, and then their mean; lent

  BackgroundMeeting meeting_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
