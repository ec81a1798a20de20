#pragma once

#include <optional>
#include <string>

#include "config/option_groups.hpp"
#include "config/option_values.hpp"
#include "scheme/averaging.hpp"
#include "scheme/balance.hpp"
#include "scheme/scheme.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// Synchronous SGD by allreduce (Chen et al. 2016): every step, the mean gradient over all workers'
/// batches, then each replica's own optimizer, which so makes the same step everywhere. The gradients
/// are added by an allreduce, or by a server. Batches may be balanced: see `Balance`.
///
/// Gradients may leave bucket by bucket while a replica that tells of them still computes others (`BucketSums`):
/// then what a worker waits for at a meeting is the last of them.
///
/// Buffers are averaged with the gradients, weighted alike. So replicas that begin with the same bits
/// keep the same bits, whoever of them is tested, saved or resumed from.
class Ssgd : public Scheme {
 public:
  struct Options {
    Averaging::Options averaging{};
    Round done{};  ///< rounds that came before, in a run that is resumed
    std::optional<Balance::Options> balance{};  ///< empty: batches keep their sizes
  };

  /// Errors: ConfigError, from `Balance`.
  Ssgd(Group& group, const Options& options);

  GradientSink* before_backward(Replica& replica, std::uint32_t samples) override;
  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override;
  std::string aggregate() const override { return averaging_.aggregate(); }
  CompressionStats compression() const override { return averaging_.compression(); }
  std::map<std::string, OptimizerState> worker_states() const override {
    return averaging_.worker_states();
  }
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override {
    averaging_.load_worker_states(states);
  }
  std::optional<SyncRound> leave(Replica& replica) override;

 private:
  void balance(const std::vector<StepInfo>& infos);

  Averaging averaging_;
  Round round_;
  std::optional<Balance> balance_;
};

namespace option {

inline constexpr Option<bool> balance{
    .name = "balance",
    .group = option_group::synchronization,
    .value = "",
    .help = "let the batch sizes of ssgd follow the speeds of the devices"};

}  // namespace option

}  // namespace syncopate
