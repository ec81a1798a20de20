#pragma once

#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "scheme/replica.hpp"

namespace syncopate::cli {

/// CPU seconds that this process needs for one mini-batch: the median of a few, after one to warm up.
/// Computes gradients only, so the replica's parameters stay what they are. CPU time, not wall time,
/// because other workers measure at the same moment.
double measure_step_cost(Replica& replica, const Dataset& dataset, BatchFeed feed);

}  // namespace syncopate::cli
