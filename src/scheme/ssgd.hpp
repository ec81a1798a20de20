#pragma once

#include "collective/group.hpp"
#include "scheme/scheme.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// How the gradients of workers are weighted in their mean.
enum class Weights {
  samples,  ///< Σ n_i g_i / N: the gradient of the union of the batches
  uniform,  ///< Σ g_i / P: the papers' mean, right only where all n_i are equal
};

/// Synchronous SGD by allreduce (Chen et al. 2016): every step, the mean gradient over all workers'
/// batches, then each replica's own optimizer, which so makes the same step everywhere. The gradients
/// are added around a ring, or by a server.
///
/// Buffers are averaged with the gradients, weighted alike. So replicas that begin with the same bits
/// keep the same bits, whoever of them is tested, saved or resumed from.
class Ssgd : public Scheme {
 public:
  struct Options {
    Weights weights = Weights::samples;
    Round done{};                    ///< rounds that came before, in a run that is resumed
    ServerClient* server = nullptr;  ///< adds the gradients; null: the ring does
  };

  Ssgd(Group& group, Options options) : group_(group), options_(options), round_(options.done) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::optional<Meeting> leave(Replica& replica) override;

 private:
  /// Σ weight_i · part_i / total, on every replica.
  void average(Replica& replica, Part part, double weight, double total);
  void average_by_server(Replica& replica, float share, std::uint64_t samples);

  Group& group_;
  Options options_;
  Round round_;
};

}  // namespace syncopate
