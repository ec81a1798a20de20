#pragma once

#include <cstddef>

#include "collective/group.hpp"
#include "collective/prices.hpp"

namespace syncopate {

/// Measures what messages and additions cost in a group, the same for all its ranks.
///
/// A few messages go from each rank to the next on its host, and then from the first rank of each host
/// to that of the next: short ones, and ones of `bytes`. All send at once, as in an allreduce. A
/// trial is as slow as its slowest rank; of five trials the fastest counts, for whatever else the
/// machines do only makes them slower.
///
/// Shape:  `bytes` is the same on every rank, and at least that of one value.
/// Cost:   some tens of latencies, and the time of some tens of messages of `bytes`.
/// Thread: it is a collective of the group.
/// Errors: RanksMissing, PeerLost, TimedOut, ViewChanged, ProtocolError.
Links measure_links(Group& group, std::size_t bytes);

}  // namespace syncopate
