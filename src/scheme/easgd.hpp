#pragma once

#include "base/time.hpp"
#include "config/option_groups.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/server_meetings.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Asynchronous elastic averaging (Zhang et al. 2015, algorithm 1): local steps with the replica's own
/// optimizer; every `local_steps` of them the replica and the server's centre are drawn towards each
/// other by the moving rate α, which the server does at once: w_i −= α (w_i − w̃), w̃ += α (w_i − w̃).
///
/// The centre is what is tested and saved. A worker that is resumed begins at the centre.
class Easgd : public Scheme {
 public:
  struct Options {
    std::uint32_t local_steps = 10;  ///< τ
    Reply start{};                   ///< what the server said when this worker began
  };

  /// `server` outlives this.
  Easgd(const Clock& clock, ServerClient& server, const Options& options)
      : clock_(clock),
        server_(server),
        options_(options),
        rounds_(options.start),
        since_{.step = options.start.steps} {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint64_t bytes_received() const override { return server_.bytes_received(); }
  std::uint64_t discard_pending() override;
  std::optional<SyncRound> leave(Replica& replica) override;

 private:
  ServerClient::Result exchange(Replica& replica);

  const Clock& clock_;
  ServerClient& server_;
  Options options_;
  ServerRounds rounds_;
  PushFacts since_;  ///< the last exchange
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
