#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/group.hpp"
#include "scheme/replica.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// What a worker says about the rounds that it takes part in, where some miss rounds (`RoundBook`).
struct Attendance {
  std::uint32_t period = 1;   ///< it takes part next that many rounds after this one
  std::uint64_t last = 0;     ///< the round that it was in before
  std::uint64_t samples = 0;  ///< of all workers, in the rounds of this run until that one
  double loss_sum = 0;        ///< over these samples
  Duration paused{};          ///< all pauses in these rounds
};

/// The facts that each worker sends to all others at the beginning of a synchronization round.
struct StepInfo {
  std::uint64_t samples = 0;
  double loss_sum = 0;
  Duration paused{};
  StepRequests requests{};
  Duration took{};           ///< the last step, where all workers are in lockstep
  bool ready = false;        ///< for a round after which a checkpoint is written (`RoundDrain`)
  bool has_buffers = false;  ///< those of the last round (`BufferMean`)
  double weight = 0;         ///< of this worker in the mean
  /// The length of its local steps (`LocalProgress`); 0 where changes are not normalised.
  double progress = 0;
  /// The settings of the step that follows; unset where workers have steps of their own.
  StepSettings settings{};
  /// The tensors that have a gradient on this worker, a set of the same length on all. Empty if
  /// workers have steps of their own.
  GradientSet gradients{};
  /// Either every worker has one, or none has.
  std::optional<Attendance> attendance{};
};

/// The step info of a worker that synchronizes after every step.
StepInfo step_info_of(const StepFacts& facts);

/// The step infos of all workers, and the round that follows from them.
struct RoundInfo {
  std::vector<StepInfo> infos;  ///< by rank
  SyncRound sync_round;         ///< the caller sets its number
  Duration waited{};  ///< by this worker, for the last step info, minus the pauses of others
};

/// Exchanges step infos: an allgather. Every synchronous scheme begins its rounds with it. The time
/// of this exchange is the time that a worker waits for others; an error names the worker that is
/// missing; and since all workers get the same step infos, all agree on the next action without
/// another message.
///
/// Errors: RanksMissing, PeerLost.
RoundInfo exchange_step_info(Group& group, const StepInfo& mine);

/// The round that follows from the step infos, of one worker or more: total samples and loss, the
/// longest pause, the union of all requests, and the union of the gradient sets of workers with a
/// weight; training ends if all workers wait at the ends of their loops. Pure.
SyncRound combine_step_infos(const std::vector<StepInfo>& infos);

/// Refuses workers whose next step, with the same gradient, would not be the same: their replicas
/// would differ from then on. Step infos without settings match any others. Pure.
/// Errors: ConfigError, the same on every worker.
void expect_same_settings(const std::vector<StepInfo>& infos);

/// Σ w_j over the step infos, w_j their weights.
double total_weight(const std::vector<StepInfo>& infos);

/// The weight of the change of the worker with step info `mine`, in a mean whose total weight is
/// `total_weight`. Where changes are normalised by the local steps that made them (FedNova, Wang et
/// al. 2020), the mean is that of the changes per length of progress a_j, times the mean length:
///
///     (Σ w_j a_j / Σ w_j) · Σ w_i (Δ_i / a_i) / Σ w_i
///
/// so the weight is w_i (Σ w_j a_j / Σ w_j) / a_i. With equal a_j, or a_i = 0, it is w_i. Pure.
double weight_of_change(const std::vector<StepInfo>& infos, const StepInfo& mine);

}  // namespace syncopate
