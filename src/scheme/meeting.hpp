#pragma once

#include <cstdint>
#include <vector>

#include "collective/group.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// What each worker tells all others when replicas synchronize.
struct StepInfo {
  std::uint64_t samples = 0;
  double loss_sum = 0;
  Duration paused{};
  StepRequests requests{};
  Duration took{};     ///< the step before, where all are in step
  bool ready = false;  ///< for a round after which a checkpoint is written (`RoundDrain`)
  double weight = 0;   ///< of this worker in the mean
  /// Of its local steps (`LocalProgress`); 0 where changes are not normalised.
  double progress = 0;
};

/// The step info of a worker that meets the others after every step.
StepInfo step_info_of(const StepFacts& facts);

/// The step infos of all workers, and what follows from them.
struct RoundInfo {
  std::vector<StepInfo> infos;  ///< by rank
  SyncRound sync_round;         ///< its round is the caller's to count
  Duration waited{};  ///< by this worker, for the last step info, pauses of others taken off
};

/// Exchanges step infos. Every synchronous scheme begins its meetings with it, for three reasons: the time
/// in it is the time spent waiting for others, exactly; a worker that does not come is known by name; and
/// since all see the same step infos, all agree what happens next without another message.
///
/// Errors: RanksMissing, PeerLost.
RoundInfo exchange_step_info(Group& group, const StepInfo& mine);

/// What follows from the step infos of a meeting. Pure.
SyncRound combine_step_infos(const std::vector<StepInfo>& infos);

/// Σ w_j over the step infos, w_j their weights.
double total_weight(const std::vector<StepInfo>& infos);

/// The weight of the change that the worker of step info `mine` brings, in a mean whose total weight is
/// `total_weight`. Where changes are normalised by the local steps behind them (FedNova, Wang et al.
/// 2020), the mean is that of the changes per length of progress a_j, times the mean length:
///
///     (Σ w_j a_j / Σ w_j) · Σ w_i (Δ_i / a_i) / Σ w_i
///
/// so the weight is w_i (Σ w_j a_j / Σ w_j) / a_i. With equal a_j, or a_i = 0, it is w_i. Pure.
double weight_of_change(const std::vector<StepInfo>& infos, const StepInfo& mine);

}  // namespace syncopate
