#pragma once

#include "train/config.hpp"

namespace syncopate {

/// Refuses a split that is given twice, and weights that the scheme does not take. Errors: ConfigError.
void check_split(const TrainConfig& config);

/// Fills what follows from the split of the data, once the number of workers is known. Where parts
/// differ, a worker weighs what it holds of the data, its drift is corrected, and the local steps of a
/// round share the learning rate and begin at the common model.
void resolve_split(TrainConfig& config);

/// Where parts differ and a round has unequal numbers of steps, a momentum of local optimizers has
/// unequal horizons: that of a fast worker ends within a round, that of a slow one lasts for many. So
/// of esync it becomes that of the outer optimizer, the same for all, unless one was chosen. To be
/// called when the learning rate is known, which stays that of the optimizer with momentum.
void move_momentum_outside(TrainConfig& config);

}  // namespace syncopate
