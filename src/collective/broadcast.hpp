#pragma once

#include <cstddef>
#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Gives every rank the bytes of rank 0, in place.
///
/// Shape:     `bytes` is as long on every rank.
/// Algorithm: binomial tree: in step k, ranks below 2^k send to those 2^k above; ⌈log2 P⌉ steps.
/// Errors:    PeerLost (the bytes are then unspecified), TimedOut, ViewChanged, ProtocolError.
void broadcast(Group& group, std::span<std::byte> bytes);
void broadcast(Group& group, std::span<float> values);

}  // namespace syncopate
