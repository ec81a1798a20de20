#pragma once

#include <set>

#include "server/consistency.hpp"
#include "server/ssp_table.hpp"

namespace syncopate {

/// Stale synchronous parallel: gradients are applied as they come, but a worker gets parameters for
/// its next clock only when they hold every update that the bound asks for.
class SspBound : public Consistency {
 public:
  SspBound(ShardStore& store, std::uint32_t slack);

  std::vector<Rank> asked(Rank worker, bool push, bool pull) override;
  std::vector<Rank> gone(Rank worker) override;
  std::vector<Rank> waited_for(Rank worker) const override;
  void resumed() override;

 private:
  std::vector<Rank> release();

  ShardStore& store_;
  SspTable table_;
  std::set<Rank> waiting_;
};

}  // namespace syncopate
