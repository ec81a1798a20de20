#include "scheme/meeting.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "collective/allgather.hpp"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "cards travel in little-endian order");

/// A card as it travels.
struct CardBytes {
  std::uint64_t samples;
  double loss_sum;
  std::int64_t paused_ns;
  std::uint8_t stop;
  std::uint8_t evaluate;
  std::uint8_t checkpoint;
  std::uint8_t ready;
  std::uint8_t unused[4];
  std::int64_t took_ns;
  double weight;
  double progress;
};
static_assert(sizeof(CardBytes) == 56 && std::is_trivially_copyable_v<CardBytes>);

CardBytes pack(const Card& card) {
  return {card.samples,
          card.loss_sum,
          card.paused.count(),
          card.requests.stop,
          card.requests.evaluate,
          card.requests.checkpoint,
          card.ready,
          {},
          card.took.count(),
          card.weight,
          card.progress};
}

Card unpack(const CardBytes& bytes) {
  return {.samples = bytes.samples,
          .loss_sum = bytes.loss_sum,
          .paused = Duration(bytes.paused_ns),
          .requests = {.stop = bytes.stop != 0,
                       .evaluate = bytes.evaluate != 0,
                       .checkpoint = bytes.checkpoint != 0},
          .took = Duration(bytes.took_ns),
          .ready = bytes.ready != 0,
          .weight = bytes.weight,
          .progress = bytes.progress};
}

}  // namespace

Card card_of(const StepFacts& facts) {
  return {.samples = facts.samples,
          .loss_sum = facts.loss_sum,
          .paused = facts.paused,
          .requests = facts.requests,
          .took = facts.took};
}

CardTable exchange_cards(Group& group, const Card& mine) {
  const CardBytes sent = pack(mine);
  std::vector<CardBytes> received(group.size());
  const TimePoint start = group.world().now();
  allgather(group, std::as_bytes(std::span(&sent, 1)), std::as_writable_bytes(std::span(received)));
  CardTable table;
  std::transform(received.begin(), received.end(), std::back_inserter(table.cards), unpack);
  table.meeting = conclude(table.cards);
  const Duration pause_of_others = table.meeting.paused - mine.paused;
  table.waited = std::max(Duration::zero(), group.world().now() - start - pause_of_others);
  return table;
}

Meeting conclude(const std::vector<Card>& cards) {
  Meeting meeting{};
  for (const Card& card : cards) {
    meeting.samples += card.samples;
    meeting.loss_sum += card.loss_sum;
    meeting.paused = std::max(meeting.paused, card.paused);
    meeting.agreed.stop |= card.requests.stop;
    meeting.agreed.evaluate |= card.requests.evaluate;
    meeting.agreed.checkpoint |= card.requests.checkpoint;
  }
  return meeting;
}

double total_weight(const std::vector<Card>& cards) {
  double total = 0;
  for (const Card& card : cards) {
    total += card.weight;
  }
  return total;
}

double weight_of_change(const std::vector<Card>& cards, const Card& mine) {
  if (mine.progress == 0 || mine.weight == 0) {
    return mine.weight;
  }
  const auto is_equal = [&](const Card& card) { return card.progress == mine.progress; };
  if (std::all_of(cards.begin(), cards.end(), is_equal)) {
    return mine.weight;
  }
  double length = 0;
  for (const Card& card : cards) {
    length += card.weight * card.progress;
  }
  return mine.weight * (length / total_weight(cards)) / mine.progress;
}

}  // namespace syncopate
