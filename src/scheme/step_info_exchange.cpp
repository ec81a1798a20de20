#include "scheme/step_info_exchange.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "infos travel in little-endian order");

/// A step info as it travels.
struct StepInfoBytes {
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
static_assert(sizeof(StepInfoBytes) == 56 && std::is_trivially_copyable_v<StepInfoBytes>);

StepInfoBytes pack(const StepInfo& info) {
  return {info.samples,
          info.loss_sum,
          info.paused.count(),
          info.requests.stop,
          info.requests.evaluate,
          info.requests.checkpoint,
          info.ready,
          {},
          info.took.count(),
          info.weight,
          info.progress};
}

StepInfo unpack(const StepInfoBytes& bytes) {
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

StepInfo step_info_of(const StepFacts& facts) {
  return {.samples = facts.samples,
          .loss_sum = facts.loss_sum,
          .paused = facts.paused,
          .requests = facts.requests,
          .took = facts.took};
}

RoundInfo exchange_step_info(Group& group, const StepInfo& mine) {
  const StepInfoBytes sent = pack(mine);
  std::vector<StepInfoBytes> received(group.size());
  const TimePoint start = group.world().now();
  allgather(group, std::as_bytes(std::span(&sent, 1)), std::as_writable_bytes(std::span(received)));
  RoundInfo round_info;
  std::transform(received.begin(), received.end(), std::back_inserter(round_info.infos), unpack);
  round_info.sync_round = combine_step_infos(round_info.infos);
  const Duration pause_of_others = round_info.sync_round.paused - mine.paused;
  round_info.waited = std::max(Duration::zero(), group.world().now() - start - pause_of_others);
  return round_info;
}

SyncRound combine_step_infos(const std::vector<StepInfo>& infos) {
  SyncRound sync_round{};
  for (const StepInfo& info : infos) {
    sync_round.samples += info.samples;
    sync_round.loss_sum += info.loss_sum;
    sync_round.paused = std::max(sync_round.paused, info.paused);
    sync_round.agreed.merge(info.requests);
  }
  return sync_round;
}

double total_weight(const std::vector<StepInfo>& infos) {
  double total = 0;
  for (const StepInfo& info : infos) {
    total += info.weight;
  }
  return total;
}

double weight_of_change(const std::vector<StepInfo>& infos, const StepInfo& mine) {
  if (mine.progress == 0 || mine.weight == 0) {
    return mine.weight;
  }
  const auto is_equal = [&](const StepInfo& info) { return info.progress == mine.progress; };
  if (std::all_of(infos.begin(), infos.end(), is_equal)) {
    return mine.weight;
  }
  double length = 0;
  for (const StepInfo& info : infos) {
    length += info.weight * info.progress;
  }
  return mine.weight * (length / total_weight(infos)) / mine.progress;
}

}  // namespace syncopate
