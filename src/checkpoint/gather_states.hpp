#pragma once

#include <functional>

#include "checkpoint/worker_states.hpp"
#include "membership/member_link.hpp"

namespace syncopate {

/// What workers remember, for a checkpoint that worker 0 writes of a round at which replicas agree.
/// Every worker calls one of the two at that round.
///
/// Sends this worker's states to worker 0, and does not wait for anything.
void send_states(World& world, const View& view, const States& states);

/// Takes those of all other workers that the job has not dropped, under their names in a checkpoint.
/// `on_loss` is called now and then, for a worker may be dropped meanwhile (`Scheme::agree_after_failures`).
/// Errors: RanksMissing, which names a worker whose states have not come within `limit`; DataError; those
/// of `on_loss`.
States gather_states(World& world, MemberLink& link, Duration limit,
                     const std::function<void()>& on_loss);

}  // namespace syncopate
