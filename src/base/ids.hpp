#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace syncopate {

/// A number that cannot be mistaken for a number of another kind.
template <class Kind, class Value>
struct Id {
  Value value = 0;

  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A node of a job as its transport numbers it. The coordinator is node 0.
using NodeId = Id<struct NodeIdKind, std::uint32_t>;
/// The number of a worker in a view: 0 to P − 1.
using Rank = Id<struct RankKind, std::uint32_t>;
/// Backward passes that one worker has done.
using Step = Id<struct StepKind, std::uint64_t>;
/// Synchronization rounds of a job.
using Round = Id<struct RoundKind, std::uint64_t>;
/// Passes over the training set.
using Epoch = Id<struct EpochKind, std::uint64_t>;

inline constexpr NodeId coordinator_node{0};

}  // namespace syncopate

template <class Kind, class Value>
struct std::hash<syncopate::Id<Kind, Value>> {
  std::size_t operator()(syncopate::Id<Kind, Value> id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
