#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "collective/group.hpp"
#include "scheme/replica.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// Gives all replicas of a group the same initial parameters and buffers.
///
/// `broadcast`:   rank 0 draws them from the job's seed. `independent`: every rank draws its own,
/// and all take Σ w_r / √P: a sum of P independent draws has
///                P times the variance of one draw, and divided by √P the variance of one. A tensor
///                that is not drawn (BatchNorm's γ = 1 and β = 0) keeps its value: every rank
///                repeats the draws of ranks 0 and 1, which have the same bits in such a tensor.
/// Errors: PeerLost, TimedOut.
void draw_initial_state(Group& group, Replica& replica, const TrainConfig& config);

/// The state of a resumed run, beside its replicas.
struct Restored {
  TrainingProgress progress;
  OptimizerState outer_state{};  ///< of the optimizer over rounds of local steps
  States own{};                  ///< of this worker; empty if the checkpoint has none
  OptimizerState pacer{};        ///< of a job that is paced, on rank 0
};

/// Gives all replicas of a group the state of a checkpoint, which only rank 0 needs to have. If
/// each worker had an optimizer of its own, the worker gets that optimizer's state.
/// Errors: DataError (see `load_checkpoint`), PeerLost, TimedOut.
Restored restore_state(Group& group, Replica& replica, const TrainConfig& config,
                       const std::filesystem::path& checkpoint);

}  // namespace syncopate
