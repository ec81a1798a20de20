#pragma once

#include "collective/group.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The relative distance up to which two replicas are one model. Replicas that step with the same
/// gradients on a CPU and on a GPU, or on CPUs of several kinds, round differently.
inline constexpr double most_by_rounding = 0.01;

/// Checks, at the end of a job, that all workers have the same model: the loop of a program may
/// have changed its model outside of the job's steps. A collective.
///
/// Errors: ConfigError, on all workers: it names those whose model differs from that of rank 0.
void expect_same_model(Group& workers, Replica& replica);

}  // namespace syncopate
