#pragma once

#include <cstddef>

#include "collective/cost_model.hpp"
#include "collective/group.hpp"

namespace syncopate {

/// Measures the costs of messages and additions in a group, with the same result on all its ranks.
///
/// Each rank sends a few messages to the next rank on its host; then each host leader sends some to
/// the leader of the next host: short ones, and ones of `bytes`. All ranks send at once, as in an
/// allreduce. A trial is as slow as its slowest rank; of five trials the fastest counts, because
/// other load on the machines only makes a trial slower.
///
/// Shape:  `bytes` is the same on every rank, and at least the size of one value.
/// Cost:   some tens of latencies, and the time of some tens of messages of `bytes`.
/// Thread: it is a collective of the group.
/// Errors: RanksMissing, PeerLost, TimedOut, ViewChanged, ProtocolError.
Links measure_links(Group& group, std::size_t bytes);

}  // namespace syncopate
