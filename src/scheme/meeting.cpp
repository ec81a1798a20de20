#include "scheme/meeting.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "collective/allgather.hpp"

namespace syncopate {
namespace {

/// As a step info travels: u64 samples, f64 loss sum, i64 pause in ns, 4 flags (stop, evaluate,
/// checkpoint, ready), 4 zeros, i64 duration in ns, f64 weight, f64 progress.
constexpr std::size_t step_info_bytes = 56;

std::array<std::byte, step_info_bytes> pack(const StepInfo& info) {
  std::array<std::byte, step_info_bytes> bytes{};
  ByteWriter(bytes)
      .put(info.samples)
      .put(info.loss_sum)
      .put(std::int64_t{info.paused.count()})
      .put(info.requests.stop)
      .put(info.requests.evaluate)
      .put(info.requests.checkpoint)
      .put(info.ready)
      .put_zeros(4)
      .put(std::int64_t{info.took.count()})
      .put(info.weight)
      .put(info.progress);
  return bytes;
}

StepInfo unpack(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  StepInfo info;
  info.samples = reader.take<std::uint64_t>();
  info.loss_sum = reader.take<double>();
  info.paused = Duration(reader.take<std::int64_t>());
  info.requests.stop = reader.take<bool>();
  info.requests.evaluate = reader.take<bool>();
  info.requests.checkpoint = reader.take<bool>();
  info.ready = reader.take<bool>();
  reader.skip(4);
  info.took = Duration(reader.take<std::int64_t>());
  info.weight = reader.take<double>();
  info.progress = reader.take<double>();
  return info;
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
  std::vector<std::byte> received(group.size() * step_info_bytes);
  const TimePoint start = group.world().now();
  allgather(group, pack(mine), received);
  RoundInfo table;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const auto each = std::span(received).subspan(rank * step_info_bytes, step_info_bytes);
    table.infos.push_back(unpack(each));
  }
  table.meeting = conclude(table.infos);
  const Duration pause_of_others = table.meeting.paused - mine.paused;
  table.waited = std::max(Duration::zero(), group.world().now() - start - pause_of_others);
  return table;
}

Meeting conclude(const std::vector<StepInfo>& infos) {
  Meeting meeting{};
  for (const StepInfo& info : infos) {
    meeting.samples += info.samples;
    meeting.loss_sum += info.loss_sum;
    meeting.paused = std::max(meeting.paused, info.paused);
    meeting.agreed.stop |= info.requests.stop;
    meeting.agreed.evaluate |= info.requests.evaluate;
    meeting.agreed.checkpoint |= info.requests.checkpoint;
  }
  return meeting;
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
