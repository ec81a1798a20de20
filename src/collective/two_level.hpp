#pragma once

#include <functional>
#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Sums `factor` · `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
/// Each rank has a factor of its own.
///
/// Algorithm: two levels, for groups on several hosts, some of which have more than one rank. Each
///            host adds up to the first of its ranks, by a binomial tree: in step s rank r of the
///            host, if bit s is the lowest that is set in it, sends what it has to r − 2^s. The first
///            ranks of the hosts add up among themselves, by `among_firsts`, and each hands the sums
///            down on its host by the same tree. So the bytes cross between hosts but once a host,
///            whatever its ranks. A long vector goes through all three in slices: while the first
///            ranks add one up, their hosts add the next.
/// Cost:      on the host with the most ranks, m: ⌈log2 m⌉ (2 (α + n β) + n γ), of n bytes; and that of
///            `among_firsts`.
/// Shape:     as long on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void two_level_allreduce(Group& group, std::span<float> values, float factor,
                         const std::function<void(Group&, std::span<float>)>& among_firsts);

/// The level of a host: `sum_to_first` leaves the sum of `factor` · `values` with rank 0 of `host`, and
/// unspecified values with the others; `take_from_first` gives all the values of rank 0.
void sum_to_first(Group& host, std::span<float> values, float factor);
void take_from_first(Group& host, std::span<float> values);

}  // namespace syncopate
