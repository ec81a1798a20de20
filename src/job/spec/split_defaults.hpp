#pragma once

#include "job/spec/config.hpp"

namespace syncopate {

/// Refuses a split that is given twice, and weights that the scheme does not take. Errors: ConfigError.
void check_split(const TrainConfig& config);

/// Fills what follows from the split of the data, once the number of workers is known: where parts differ, a worker
/// weighs what it holds of the data.
void resolve_split(TrainConfig& config);

}  // namespace syncopate
