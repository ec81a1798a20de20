#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "server/consistency.hpp"

namespace syncopate {

/// Stale synchronous parallel (Ho et al. 2013): no worker runs more than `slack` clocks ahead of
/// the slowest.
///
/// A worker's clock counts its steps whose updates are in the model: its step at clock c computes
/// update c and takes the clock to c + 1. It may compute at clock c only with every update of clock
/// ≤ c − slack − 1 visible, that is, once every worker present has come to c − slack.
///
/// Invariant: max(clocks) − min(clocks) ≤ slack + 1 over those present, if no worker starts
///            without permission. Permission stays valid: clocks only grow, and a worker that comes
///            back has the greatest.
/// Liveness:  the slowest worker may always start.
/// Thread:    one at a time.
/// Errors:    InternalError if a worker is not present.
class SspTable {
 public:
  struct Options {
    std::uint32_t workers = 0;
    std::uint32_t slack = 0;  ///< 0: bulk synchronous
  };

  explicit SspTable(const Options& options);

  bool may_start(Rank worker) const;
  /// The workers that `worker` waits for, in rank order; empty if it may start.
  std::vector<Rank> laggards(Rank worker) const;
  void finished(Rank worker);
  /// A worker that left or died no longer holds others up. Others may start now.
  void remove(Rank worker);
  /// A removed worker is back. Its clock is that of the fastest, so that it holds nobody up.
  void restore(Rank worker);

  bool present(Rank worker) const;
  std::uint64_t clock(Rank worker) const { return clocks_[checked(worker)]; }
  /// Sets a worker's clock, in a table that resumes another.
  void set_clock(Rank worker, std::uint64_t clock) { clocks_[checked(worker)] = clock; }

 private:
  std::size_t checked(Rank worker) const;

  std::uint32_t slack_;
  std::vector<std::uint64_t> clocks_;  ///< by rank
  std::vector<bool> present_;          ///< by rank
};

/// Stale synchronous parallel: gradients are applied as they come, but a worker gets parameters for
/// its next clock only when they hold every update that the bound asks for.
class SspBound : public Consistency {
 public:
  SspBound(ShardStore& store, std::uint32_t slack);

  std::vector<Rank> on_request(Rank worker, bool push, bool pull) override;
  std::vector<Rank> on_gone(Rank worker) override;
  std::vector<Rank> on_rest(Rank worker) override { return on_gone(worker); }
  void on_return(Rank worker) override { table_.restore(worker); }
  std::vector<Rank> waited_for(Rank worker) const override;
  void on_resumed() override;

 private:
  std::vector<Rank> release();

  ShardStore& store_;
  SspTable table_;
  std::set<Rank> waiting_;
};

}  // namespace syncopate
