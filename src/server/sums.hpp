#pragma once

#include <set>

#include "server/consistency.hpp"

namespace syncopate {

/// Allreduce through a server: when every worker has pushed, each is answered Σ weight_i · x_i, added
/// in the order of ranks, so that the same bits come out however they arrive.
class Sums : public Consistency {
 public:
  explicit Sums(ShardStore& store) : store_(store) {}

  std::vector<Rank> asked(Rank worker, bool push, bool pull) override;
  /// Nobody can go on without it: the job ends, and not here.
  std::vector<Rank> gone(Rank /*worker*/) override { return {}; }
  std::vector<Rank> waited_for(Rank worker) const override;

 private:
  ShardStore& store_;
  std::set<Rank> here_;
};

}  // namespace syncopate
