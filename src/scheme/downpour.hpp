#pragma once

#include <vector>

#include "base/time.hpp"
#include "config/option_groups.hpp"
#include "scheme/push_weight.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/server_meetings.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Downpour SGD (Dean et al. 2012, algorithm 7.1): every step of a replica's own optimizer is taken
/// at once; the gradients of `push_every` steps are pushed as one sum, to which the server applies a
/// rule of its own; every `fetch_every` steps the server's parameters replace the replica's.
///
/// The last push of a worker holds what is left over, so that no gradient is lost.
class Downpour : public Scheme {
 public:
  struct Options {
    std::uint32_t push_every = 1;   ///< n_push
    std::uint32_t fetch_every = 1;  ///< n_fetch
    PushWeight weight{};
    Reply start{};  ///< what the server said when this worker began
  };

  /// `server` outlives this.
  Downpour(const Clock& clock, ServerClient& server, const Options& options)
      : clock_(clock),
        server_(server),
        options_(options),
        meetings_(options.start),
        held_{.step = options.start.steps} {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint64_t bytes_received() const override { return server_.bytes_received(); }
  CompressionStats compression() const override { return server_.compression(); }
  std::uint64_t discard_pending() override;
  std::optional<Meeting> leave(Replica& replica) override;

 private:
  void hold(std::span<const float> gradient, const StepFacts& facts);
  void let_go();
  ServerClient::Result exchange(Replica& replica, bool push, bool fetch);

  const Clock& clock_;
  ServerClient& server_;
  Options options_;
  ServerMeetings meetings_;
  std::vector<float> sum_;  ///< of the gradients since the last push
  PushFacts held_;          ///< what they add up to
  std::uint64_t held_steps_ = 0;
};

namespace option {

inline constexpr Option<std::uint32_t> push_every{.name = "push-every",
                                                  .group = option_group::server,
                                                  .value = "STEPS",
                                                  .help = "n_push of downpour",
                                                  .initial = 4,
                                                  .limits = at_least_one};

inline constexpr Option<std::uint32_t> fetch_every{.name = "fetch-every",
                                                   .group = option_group::server,
                                                   .value = "STEPS",
                                                   .help = "n_fetch of downpour",
                                                   .initial = 4,
                                                   .limits = at_least_one};

inline constexpr Option<Optimizer> server_optimizer{
    .name = "server-optimizer",
    .group = option_group::server,
    .value = "NAME",
    .help = "the rule of downpour's server; elsewhere it is --optimizer",
    .initial = Optimizer::adagrad};

inline constexpr Option<std::optional<double>> server_learning_rate{
    .name = "server-learning-rate",
    .group = option_group::server,
    .value = "X",
    .help = "of downpour's server",
    .limits = positive,
    .when_unset = "the rule's usual one"};

}  // namespace option

}  // namespace syncopate
