#pragma once

#include "base/time.hpp"
#include "scheme/async_rounds.hpp"
#include "scheme/scheme_spec.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// In every step a worker pushes its gradient and pulls the parameters for the next step. The
/// server runs the optimizer. It decides when the gradient enters the model and when it answers the
/// pull (`server/consistency.hpp`); these two rules distinguish the schemes:
///
///     scheme   gradient enters the model        pull is answered
///     asgd     at once                          at once                     Dean et al. 2012
///     dc-asgd  at once, delay compensated       at once                     Zheng et al. 2017
///     ssp      at once                          within a staleness bound    Ho et al. 2013
///     backup   with the first n of its step     when that step is closed    Chen et al. 2016
///
/// Buffers are pushed with the gradient. A worker keeps its own buffers; their mean on the server
/// is evaluated and saved.
class PushPull : public ServerScheme {
 public:
  struct Options {
    PushWeight weight{};
    Reply start{};  ///< the server's reply when this worker began
  };

  /// `server` outlives this.
  PushPull(ServerClient& server, const Options& options)
      : ServerScheme(server, options.start), options_(options), step_(options.start.steps) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;

 private:
  Options options_;
  std::uint64_t step_;
};

/// Makes `PushPull` for the schemes above.
std::unique_ptr<Scheme> make_push_pull(const SchemeContext& context);

}  // namespace syncopate
