#pragma once

#include <optional>
#include <string>

#include "config/option_values.hpp"
#include "scheme/averaging.hpp"
#include "scheme/balance.hpp"
#include "scheme/scheme.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// Synchronous SGD by allreduce (Chen et al. 2016). In every step an allreduce, or a server,
/// replaces the gradient of each replica by the mean gradient over all workers' batches; then each
/// replica's own optimizer makes the same step. Batches may be balanced: see `Balance`.
///
/// Where a replica reports its gradient during the backward pass, buckets of it are reduced while
/// others are still computed (`BucketReducer`). The worker then waits only for the last buckets.
///
/// Buffers are averaged with the same weights as gradients. So replicas that begin with the same
/// bits keep the same bits, and any of them can be evaluated, saved and resumed from.
class Ssgd : public AveragingScheme, public DividesSteps {
 public:
  struct Options {
    Averaging::Options averaging{};
    Round done{};                               ///< rounds before this run, where it is resumed
    std::optional<Balance::Options> balance{};  ///< empty: batch sizes are fixed
  };

  /// Errors: ConfigError, from `Balance`.
  Ssgd(Group& group, const Options& options);

  GradientSink* before_backward(Replica& replica, std::uint32_t samples) override;
  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override;
  std::span<const std::uint32_t> parts() const override;

 private:
  void balance(const std::vector<StepInfo>& infos);

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
