#pragma once

#include "spec/config.hpp"

namespace syncopate {

/// Errors: ConfigError if there are batches of the workers beside a global batch, of which a worker
/// would get less than the least part; or if a global batch does not fit into the limits of the
/// workers, or sizes are listed for another number of workers.
void check_batches(const TrainConfig& config);

/// Call it only if the user or a file gave both sizes: the usual batch may be above a limit, which
/// cuts it. Errors: ConfigError if a worker's batch is above its limit.
void expect_batches_within_limits(const TrainConfig& config);

}  // namespace syncopate
