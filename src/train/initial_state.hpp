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

/// The relative distance up to which two replicas are one model. Replicas that step with the same
/// gradients on a CPU and on a GPU, or on CPUs of several kinds, round differently.
inline constexpr double most_by_rounding = 0.01;

/// Checks, at the end of a job, that all workers have the same model: the loop of a program may
/// have changed its model outside of the job's steps. A collective, after the last synchronization.
///
/// Errors: ConfigError, on all workers: it names those whose model differs from that of rank 0.
void expect_same_model(const Group& workers, Replica& replica);

}  // namespace syncopate
