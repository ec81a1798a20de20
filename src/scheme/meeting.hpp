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
  Wishes wishes{};
  Duration took{};     ///< the step before, where all are in step
  bool ready = false;  ///< for a round after which a checkpoint is written (`RoundDrain`)
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

}  // namespace syncopate
