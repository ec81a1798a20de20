#pragma once

#include <cstdint>
#include <vector>

#include "collective/group.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// What a worker lays on the table when replicas meet.
struct Card {
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

/// The card of a worker that meets the others after every step.
Card card_of(const StepFacts& facts);

/// The cards of all workers, and what follows from them.
struct CardTable {
  std::vector<Card> cards;  ///< by rank
  Meeting meeting;          ///< its round is the caller's to count
  Duration waited{};        ///< by this worker, for the last card, pauses of others taken off
};

/// Exchanges cards. Every synchronous scheme begins its meetings with it, for three reasons: the time
/// in it is the time spent waiting for others, exactly; whoever does not come is known by name; and
/// since all see the same cards, all agree what happens next without another message.
///
/// Errors: RanksMissing, PeerLost.
CardTable exchange_cards(Group& group, const Card& mine);

/// What follows from the cards of a meeting. Pure.
Meeting conclude(const std::vector<Card>& cards);

/// Σ w_j over the cards, w_j their weights.
double total_weight(const std::vector<Card>& cards);

/// The weight of the change that the worker of card `mine` brings, in a mean whose total weight is
/// `total_weight`. Where changes are normalised by the local steps behind them (FedNova, Wang et al.
/// 2020), the mean is that of the changes per length of progress a_j, times the mean length:
///
///     (Σ w_j a_j / Σ w_j) · Σ w_i (Δ_i / a_i) / Σ w_i
///
/// so the weight is w_i (Σ w_j a_j / Σ w_j) / a_i. With equal a_j, or a_i = 0, it is w_i. Pure.
double weight_of_change(const std::vector<Card>& cards, const Card& mine);

}  // namespace syncopate
