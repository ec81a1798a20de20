#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "transport/tags.hpp"

namespace syncopate {

/// The messages that a node accepts and their maximum sizes, by tag and role. A peer announces the
/// size of a message before its bytes, so the node checks the announcement.
struct PayloadLimits {
  NodeId self{};
  std::uint64_t message_bytes = 0;  ///< of any message
  bool control_only = false;        ///< a coordinator, which takes only control messages

  static constexpr std::uint64_t control_bytes = 16 << 20;
  static constexpr std::uint64_t small_bytes = 1 << 20;

  /// The greatest payload of a message from `from`. Empty if this node accepts no message with
  /// `tag`: no receive would take it, so it is dropped.
  constexpr std::optional<std::uint64_t> of(Tag tag, NodeId from) const {
    if (tag == tags::to_coordinator) {
      return at_most(control_bytes, self == coordinator_node);
    }
    if (tag == tags::from_coordinator) {
      return at_most(control_bytes, from == coordinator_node);
    }
    if (const Tag base = tags::base_of(tag); std::ranges::count(tags::small, base) > 0) {
      return at_most(small_bytes, !control_only);
    } else {
      return at_most(message_bytes, !control_only && std::ranges::count(tags::large, base) > 0);
    }
  }

 private:
  constexpr std::optional<std::uint64_t> at_most(std::uint64_t bytes, bool taken) const {
    return taken ? std::optional(std::min(bytes, message_bytes)) : std::nullopt;
  }
};

}  // namespace syncopate
