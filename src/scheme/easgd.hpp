#pragma once

#include "base/time.hpp"
#include "config/option.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/server_scheme.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Asynchronous elastic averaging (Zhang et al. 2015, algorithm 1). The replica takes local steps
/// with its own optimizer. After every `local_steps` steps the server moves the replica w_i and its
/// center w̃ towards each other by the moving rate α, both with the same difference:
///
///     d = α (w_i − w̃),  w_i −= d,  w̃ += d
///
/// The center is evaluated and saved. A resumed worker begins at the center.
class Easgd : public ServerScheme, public HasPending {
 public:
  struct Options {
    std::uint32_t local_steps = 10;  ///< τ
    Reply start{};                   ///< the server's reply when this worker began
  };

  /// `server` outlives this.
  Easgd(const Clock& clock, ServerClient& server, const Options& options)
      : ServerScheme(server, options.start),
        clock_(clock),
        options_(options),
        since_{.step = options.start.steps} {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint64_t discard_pending() override;
  std::optional<SyncRound> flush_pending(Replica& replica) override;

 private:
  ServerClient::Result exchange(Replica& replica);

  const Clock& clock_;
  Options options_;
  PushFacts since_;  ///< facts of the steps since the last exchange
  std::uint64_t steps_since_ = 0;
};

namespace option {

inline constexpr Option<std::optional<double>> moving_rate{.name = "moving-rate",
                                                           .group = option_group::server,
                                                           .value = "X",
                                                           .help = "alpha of easgd, in (0, 1]",
                                                           .limits = fraction,
                                                           .when_unset = "0.9 over the workers"};

}  // namespace option

}  // namespace syncopate
