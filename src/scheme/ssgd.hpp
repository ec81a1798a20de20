#pragma once

#include "scheme/averaging.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// Synchronous SGD by allreduce (Chen et al. 2016): every step, the mean gradient over all workers'
/// batches, then each replica's own optimizer, which so makes the same step everywhere. The gradients
/// are added around a ring, or by a server.
///
/// Buffers are averaged with the gradients, weighted alike. So replicas that begin with the same bits
/// keep the same bits, whoever of them is tested, saved or resumed from.
class Ssgd : public Scheme {
 public:
  /// `done` rounds came before, in a run that is resumed.
  Ssgd(Group& group, const Averaging::Options& options, Round done)
      : averaging_(group, options), round_(done) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::optional<Meeting> leave(Replica& replica) override;

 private:
  Averaging averaging_;
  Round round_;
};

}  // namespace syncopate
