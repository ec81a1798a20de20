#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "runtime/job_view.hpp"
#include "runtime/waits.hpp"
#include "runtime/world.hpp"
#include "transport/tags.hpp"

namespace syncopate {

/// The nodes that take part in a collective, in the order of ranks, as one of them sees it.
///
/// A group of one makes every collective a no-op.
///
/// A group that may lose members begins with generation 0. When one of them is lost, every collective under
/// way throws ViewChanged, or the PeerLost that told of it; after `catch_up` the group is that of those
/// who are left, and its generation the number of those who are gone. All members come to the same
/// groups, though one that hears of two losses at once passes over a generation. Each generation has
/// tags of its own, so no message of a broken collective is taken for one of the next. Those that
/// nobody takes any more stay with the transport: less than a model's bytes a loss.
///
/// Thread: one collective at a time per group.
class Group {
 public:
  struct Options {
    std::vector<NodeId> members;  ///< rank r is members[r]
    Rank self;
    Duration wait_limit = std::chrono::seconds(60);  ///< the least that a wait may take
    WaitArbiter* arbiter = nullptr;     ///< judges longer waits; null: they end at their limit
    FailureListener* losses = nullptr;  ///< whom the group goes on without; null: nobody
    /// The host of each rank, numbered anyhow; empty: every rank is on a host of its own.
    std::vector<std::uint32_t> hosts = {};
  };

  Group(World& world, Options options);

  std::uint32_t size() const { return static_cast<std::uint32_t>(options_.members.size()); }
  Rank rank() const { return options_.self; }
  NodeId node(Rank rank) const { return options_.members[rank.value]; }
  /// The rank `steps` places on in the ring.
  Rank neighbour(std::uint32_t steps) const { return Rank{(rank().value + steps) % size()}; }

  /// The host of each rank.
  const std::vector<std::uint32_t>& hosts() const { return options_.hosts; }

  /// A group of some of this one's ranks, in ascending order, of which this rank is one. It has this
  /// one's generation, limits, tags and scratch memory: its collectives are parts of one of this
  /// group, and end before that does.
  Group of(const std::vector<Rank>& ranks) const;

  /// The same ranks with tags and scratch memory of their own: one collective of it may go on while one of
  /// this does, in another task. It does not hear of losses.
  Group beside() const;

  /// A member's rank in the job, by which errors name it.
  Rank rank_in_job(Rank rank) const { return ranks_in_job_[rank.value]; }

  FailureListener* losses() const { return options_.losses; }
  std::uint32_t generation() const { return generation_; }
  /// Of this generation.
  Tag tag(Tag tag) const {
    return tags::of_generation(is_beside_ ? tags::beside(tag) : tag, generation_);
  }
  /// Leaves out those who have been lost since it was last called. No collective is under way.
  void catch_up();

  /// Waits for a message that `from`, a member of the group, owes. A wait that takes long is the arbiter's to judge.
  /// Errors: those of the transfer; ViewChanged, at the latest `glance` after a loss; RanksMissing, without an arbiter.
  void await(Transfer& receive, Rank from, const char* operation = "allreduce");
  /// The same of any wait. `missing`: the ranks in the job that have not come.
  void await(const Waits::Attempt& wait, const Waits::Awaited& awaited);
  static constexpr Duration glance = Waits::poll_every;

  World& world() { return world_; }
  Transport& transport() { return world_.transport(); }

  /// How long waits of this group have taken, and so how long the next one may where nobody computes.
  Waits& waits() { return waits_; }
  /// Of what ends by itself, such as a send.
  TimePoint deadline() const { return world_.now() + waits_.limit(); }

  /// Scratch memory of at least `count` values, kept from call to call: first touches are slow.
  std::span<float> scratch(std::size_t count);

 private:
  World& world_;
  Options options_;
  std::vector<Rank> ranks_in_job_;
  std::uint32_t generation_ = 0;
  bool is_beside_ = false;
  Waits waits_;
  std::shared_ptr<std::vector<float>> scratch_;  ///< of this group and its parts

  void leave_out(Rank in_job);
  void check() const;
};

}  // namespace syncopate
