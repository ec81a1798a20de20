#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "cluster/adaptive_limit.hpp"
#include "cluster/world.hpp"

namespace syncopate {

/// The nodes that take part in a collective, in the order of ranks, as one of them sees it.
///
/// A group of one makes every collective a no-op.
/// Thread: one collective at a time per group.
class Group {
 public:
  struct Options {
    std::vector<NodeId> members;  ///< rank r is members[r]
    Rank self;
    Duration wait_limit = std::chrono::seconds(60);  ///< the least that a wait may take
  };

  Group(World& world, Options options);

  std::uint32_t size() const { return static_cast<std::uint32_t>(options_.members.size()); }
  Rank rank() const { return options_.self; }
  NodeId node(Rank rank) const { return options_.members[rank.value]; }
  /// The rank `steps` places on in the ring.
  Rank neighbour(std::uint32_t steps) const { return Rank{(rank().value + steps) % size()}; }

  World& world() { return world_; }
  Transport& transport() { return world_.transport(); }

  /// How long waits of this group have taken, and so how long the next one may.
  AdaptiveLimit& waits() { return waits_; }
  TimePoint deadline() const { return world_.now() + waits_.limit(); }

  /// Scratch memory of at least `count` values, kept from call to call: first touches are slow.
  std::span<float> scratch(std::size_t count);

 private:
  World& world_;
  Options options_;
  AdaptiveLimit waits_;
  std::vector<float> scratch_;
};

}  // namespace syncopate
