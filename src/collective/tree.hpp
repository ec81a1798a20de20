#pragma once

#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Sums `factor` · `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
/// Each rank has a factor of its own.
///
/// Algorithm: a binomial tree for each rank, all of them at once (recursive doubling; Thakur et al. 2005).
///            A tree of one root takes ⌈log2 P⌉ steps to add, and as many to hand the sum down again;
///            were every rank a root, nothing would have to be handed down, and the P trees
///            share their messages: in step s ranks r and r xor 2^s exchange what they have, and both add
///            it, so that every rank holds the sum of 2^(s+1). Where P is no power of two, the r
///            ranks beyond the greatest one below it first give theirs to the first r, and get
///            the sums from them in the end. Both sides of an exchange add the same two numbers, and
///            a + b has the bits of b + a (but for the payload of NaN).
/// Cost:      log2 P · (α + n β + n γ), of n bytes; 2 (α + n β) + n γ more where P is no power of two. No
///            algorithm has fewer latencies, so this is the one for short vectors; of long ones it
///            moves log2 P times the bytes that a butterfly moves one way.
/// Shape:     as long on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void tree_allreduce(Group& group, std::span<float> values, float factor = 1);

}  // namespace syncopate
