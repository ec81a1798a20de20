#pragma once

#include "base/time.hpp"
#include "scheme/push_weight.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/server_meetings.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// Every step: pushes the gradient, and pulls the parameters for the next one. The optimizer is the
/// server's. When the gradient enters the model, and when the pull is answered, is the server's
/// decision (`server/consistency.hpp`), and makes the scheme:
///
///   asgd     at once, at once                                        Dean et al. 2012
///   dc-asgd  at once, with delay compensation; at once               Zheng et al. 2017
///   ssp      at once; within a bound on staleness                    Ho et al. 2013
///   backup   with the first n of its step; when that step is closed  Chen et al. 2016
///
/// Buffers are pushed with the gradient. A worker goes on with its own; the server's mean is what is
/// tested and saved.
class PushPull : public Scheme {
 public:
  struct Options {
    PushWeight weight{};
    Reply start{};  ///< what the server said when this worker began
  };

  /// `server` outlives this.
  PushPull(ServerClient& server, const Options& options)
      : server_(server), options_(options), rounds_(options.start), step_(options.start.steps) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint64_t bytes_received() const override { return server_.bytes_received(); }
  CompressionStats compression() const override { return server_.compression(); }
  std::optional<SyncRound> leave(Replica& /*replica*/) override {
    server_.leave();
    return std::nullopt;
  }

 private:
  ServerClient& server_;
  Options options_;
  ServerRounds rounds_;
  std::uint64_t step_;
};

/// `PushPull`, for the schemes above.
std::unique_ptr<Scheme> make_push_pull(const SchemeContext& context);

}  // namespace syncopate
