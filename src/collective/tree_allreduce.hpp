#pragma once

#include <functional>
#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, in place, with
/// the same bits on every rank. Each rank has a factor of its own.
///
/// Algorithm: a binomial tree for each rank, all of them at once (recursive doubling; Thakur et al.
///            2005). A tree of one root takes ⌈log2 P⌉ steps to reduce, and as many to broadcast
///            the result. With every rank a root there is nothing to broadcast, and the P trees
///            share their messages: in step s ranks r and r xor 2^s exchange their partial sums and
///            both add them, so every rank holds the sum of 2^(s+1). Where P is no power of two,
///            the r ranks beyond the greatest power below it first send their values to the first r
///            ranks, and receive the results from them in the end. Both sides of an exchange add
///            the same two numbers, and a + b has the bits of b + a (except the payload of NaN).
/// Cost:      log2 P · (α + n β + n γ), of n bytes; 2 (α + n β) + n γ more where P is no power of
///            two. No algorithm has fewer latencies, so this is the one for short vectors; for long
///            vectors it moves log2 P times the bytes that a butterfly moves one way.
/// Shape:     the same length on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void tree_allreduce(Group& group, std::span<float> values, float factor = 1);

/// The same for groups on several hosts, some of which have several ranks.
///
/// Algorithm: two levels. Each host reduces to its lowest rank, the leader, by a binomial tree: in
///            step s rank r of the host, if s is the lowest bit set in it, sends its partial sums
///            to r − 2^s. The leaders reduce among themselves, by `among_leaders`, and each
///            broadcasts the result on its host by the same tree. So the bytes cross between hosts
///            once per host, whatever its number of ranks. A long vector passes all three stages in
///            slices: while the leaders reduce one, their hosts reduce the next.
/// Cost:      on the host with the most ranks, m: ⌈log2 m⌉ (2 (α + n β) + n γ), of n bytes; and
///            that of `among_leaders`.
/// Shape, Thread, Errors: as `tree_allreduce`.
void two_level_allreduce(Group& group, std::span<float> values, float factor,
                         const std::function<void(Group&, std::span<float>)>& among_leaders);

/// The lower level: `reduce_to_leader` leaves the sum of `factor` · `values` on rank 0 of `host`,
/// and unspecified values on the others; `broadcast_from_leader` gives all ranks the values of rank
/// 0.
void reduce_to_leader(Group& host, std::span<float> values, float factor);
void broadcast_from_leader(Group& host, std::span<float> values);

}  // namespace syncopate
