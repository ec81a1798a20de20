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

/// The nodes that take part in collectives, in the order of ranks, from the view of one of them.
///
/// A group of one makes every collective a no-op.
///
/// A group that may lose members begins with generation 0. When it loses one, every collective
/// under way throws ViewChanged, or the PeerLost that reported the loss; after `drop_lost` the
/// group consists of the remaining members, and its generation is the number of lost ones. All
/// members reach the same groups, though one that learns of two losses at once skips a generation.
/// Each generation has tags of its own, so no member takes a message of a broken collective for one
/// of the next. Messages of a broken collective that no member receives stay in the transport: less
/// than a model's bytes per loss.
///
/// Thread: one collective at a time per group.
class Group {
 public:
  struct Options {
    std::vector<NodeId> members;  ///< rank r is members[r]
    Rank self;
    Duration wait_limit = std::chrono::seconds(60);  ///< the shortest limit of a wait
    WaitArbiter* arbiter = nullptr;  ///< decides about longer waits; null: they end at their limit
    FailureListener* failures = nullptr;  ///< the lost members to drop; null: none is dropped
    /// Called every `glance` while the group waits for members, if `failures` is null; it may
    /// throw.
    std::function<void()> poll = {};
    /// The host of each rank, in any numbering; empty: every rank is on a host of its own.
    std::vector<std::uint32_t> hosts = {};
    /// The ranks by which errors name the members; empty: their ranks in this group.
    std::vector<Rank> ranks_in_job = {};
    /// The first generation. It distinguishes groups of the same nodes, if they lose no members.
    std::uint32_t number = 0;
  };

  Group(World& world, Options options);

  std::uint32_t size() const { return static_cast<std::uint32_t>(options_.members.size()); }
  Rank rank() const { return options_.self; }
  NodeId node(Rank rank) const { return options_.members[rank.value]; }
  /// The rank `steps` further in the ring.
  Rank neighbour(std::uint32_t steps) const { return Rank{(rank().value + steps) % size()}; }

  /// The host of each rank.
  const std::vector<std::uint32_t>& hosts() const { return options_.hosts; }

  /// A group of some of this group's ranks, in ascending order, this rank among them. It shares
  /// this group's generation, limits, tags and scratch memory: its collectives are parts of a
  /// collective of this group, and end before that does.
  Group subgroup(const std::vector<Rank>& ranks) const;

  /// The same ranks with tags and scratch memory of their own: a collective of the duplicate may
  /// run while one of this group does, in another task. It is not notified of losses.
  Group duplicate() const;

  /// A member's rank in the job, which errors report.
  Rank rank_in_job(Rank rank) const { return ranks_in_job_[rank.value]; }

  FailureListener* failures() const { return options_.failures; }
  std::uint32_t generation() const { return generation_; }
  /// The tag that messages have in this generation and in this call.
  Tag tag(Tag tag) const {
    return tags::of_generation(is_duplicate_ ? tags::beside(tag) : tag,
                               tags::of_call(generation_, call_));
  }
  /// Sets a digest of the next collective. Members that call a different collective have other
  /// tags, so they take no message of this one for their own. Only for a group that loses no
  /// members.
  void set_call(std::uint8_t digest) { call_ = digest; }
  /// Drops the members that have been lost since the last call. Called while no collective is under
  /// way.
  void drop_lost();

  /// Waits for a message that the member `from` has to send. The arbiter decides about long waits.
  /// Errors: those of the transfer; ViewChanged, at the latest `glance` after a loss; RanksMissing
  ///         if there is no arbiter.
  void await(Transfer& receive, Rank from, const char* operation = "allreduce");
  /// The same for any wait. `awaited.missing` returns the ranks, in the job, whose messages have
  /// not arrived.
  void await(const Waits::Attempt& wait, const Waits::Awaited& awaited);
  static constexpr Duration glance = Waits::poll_every;

  World& world() { return world_; }
  Transport& transport() { return world_.transport(); }

  /// Records how long the waits of this group have taken, and derives the limit of the next one.
  Waits& waits() { return waits_; }
  /// The deadline of a transfer that is waited for only once, such as a send. With an arbiter it is
  /// twice the limit: other members ask the arbiter at the limit, so it has time to find the failed
  /// member first.
  TimePoint deadline() const { return world_.now() + (options_.arbiter ? 2 : 1) * waits_.limit(); }

  /// Scratch memory of at least `count` values, kept from call to call: first touches are slow.
  std::span<float> scratch(std::size_t count);

 private:
  World& world_;
  Options options_;
  std::vector<Rank> ranks_in_job_;
  std::uint32_t generation_;
  std::uint8_t call_ = 0;
  bool is_duplicate_ = false;
  Waits waits_;
  std::shared_ptr<std::vector<float>> scratch_;  ///< of this group and its subgroups

  void drop(Rank in_job);
  void check() const;
};

}  // namespace syncopate
