#pragma once

#include <vector>

#include "base/time.hpp"
#include "config/option.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/server_scheme.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Downpour SGD (Dean et al. 2012, algorithm 7.1). The replica takes every step with its own
/// optimizer. After `push_every` steps the worker pushes the sum of their gradients, to which the
/// server applies its own update rule. After `fetch_every` steps the server's parameters replace
/// the replica's.
///
/// The last push of a worker holds the remaining gradients, so no gradient is lost.
class Downpour : public ServerScheme, public HasPending {
 public:
  struct Options {
    std::uint32_t push_every = 1;   ///< n_push
    std::uint32_t fetch_every = 1;  ///< n_fetch
    PushWeight weight{};
    Reply start{};  ///< the server's reply when this worker began
  };

  /// `server` outlives this.
  Downpour(const Clock& clock, ServerClient& server, const Options& options)
      : ServerScheme(server, options.start),
        clock_(clock),
        options_(options),
        pending_{.step = options.start.steps} {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint64_t discard_pending() override;
  /// Discards the gradients that are not pushed yet: they belong to the former model.
  void take_replica(Replica& replica, const AllWorkers& workers) override {
    clear_pending();
    ServerScheme::take_replica(replica, workers);
  }
  std::optional<SyncRound> flush_pending(Replica& replica) override;

 private:
  void accumulate(std::span<const float> gradient, const StepFacts& facts);
  void clear_pending();
  ServerClient::Result exchange(Replica& replica, bool push, bool fetch);

  const Clock& clock_;
  Options options_;
  std::vector<float> gradient_sum_;  ///< of the gradients since the last push
  PushFacts pending_;                ///< facts of these steps
  std::uint64_t pending_steps_ = 0;
};

namespace option {

inline constexpr Option<std::uint32_t> push_every{
    .name = "push-every",
    .group = option_group::server,
    .value = "STEPS",
    .help = "steps between two pushes of downpour (n_push)",
    .initial = 4,
    .limits = step_counts};

inline constexpr Option<std::uint32_t> fetch_every{
    .name = "fetch-every",
    .group = option_group::server,
    .value = "STEPS",
    .help = "steps between two fetches of downpour (n_fetch)",
    .initial = 4,
    .limits = step_counts};

inline constexpr Option<Optimizer> server_optimizer{
    .name = "server-optimizer",
    .group = option_group::server,
    .value = "NAME",
    .help = "update rule of downpour's server; other schemes take --optimizer",
    .initial = Optimizer::adagrad};

inline constexpr Option<std::optional<double>> server_learning_rate{
    .name = "server-learning-rate",
    .group = option_group::server,
    .value = "X",
    .help = "learning rate of downpour's server",
    .limits = rates,
    .when_unset = "the default of the rule"};

}  // namespace option

}  // namespace syncopate
