#include "scheme/step_info_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// Wire format of a step info: u64 samples, f64 loss sum, i64 pause in ns, 5 flags (stop, evaluate,
/// checkpoint, ready, has buffers), 3 zeros, i64 duration in ns, f64 weight, f64 progress, f64
/// learning rate, u32 checksum of settings, u32 number and u32 name of a place, then a bit for each
/// tensor that may be without a gradient; where workers miss rounds, u32 period, u64 last round,
/// u64 samples, f64 loss sum and i64 pauses in ns until then.
constexpr std::size_t fixed_bytes = 76;
constexpr std::size_t attendance_bytes = 36;

std::size_t bytes_of(const StepInfo& info) {
  return fixed_bytes + GradientSet::packed_bytes(info.gradients.tensors()) +
         (info.attendance ? attendance_bytes : 0);
}

void pack(const Attendance& attendance, ByteWriter& into) {
  into.put(attendance.period)
      .put(attendance.last)
      .put(attendance.samples)
      .put(attendance.loss_sum)
      .put(std::int64_t{attendance.paused.count()});
}

Attendance attendance_in(ByteReader& reader) {
  Attendance attendance;
  attendance.period = reader.take<std::uint32_t>();
  attendance.last = reader.take<std::uint64_t>();
  attendance.samples = reader.take<std::uint64_t>();
  attendance.loss_sum = reader.take<double>();
  attendance.paused = Duration(reader.take<std::int64_t>());
  return attendance;
}

std::vector<std::byte> pack(const StepInfo& info) {
  std::vector<std::byte> bytes(bytes_of(info));
  ByteWriter writer(bytes);
  writer.put(info.samples)
      .put(info.loss_sum)
      .put(std::int64_t{info.paused.count()})
      .put(info.requests.stop)
      .put(info.requests.evaluate)
      .put(info.requests.checkpoint)
      .put(info.ready)
      .put(info.has_buffers)
      .put_zeros(3)
      .put(std::int64_t{info.took.count()})
      .put(info.weight)
      .put(info.progress)
      .put(info.settings.learning_rate)
      .put(info.settings.checksum)
      .put(info.requests.place.number)
      .put(info.requests.place.name)
      .put_bytes(info.gradients.packed());
  if (info.attendance) {
    pack(*info.attendance, writer);
  }
  return bytes;
}

StepInfo unpack(std::span<const std::byte> bytes, const StepInfo& like) {
  const std::size_t tensors = like.gradients.tensors();
  ByteReader reader(bytes);
  StepInfo info;
  info.samples = reader.take<std::uint64_t>();
  info.loss_sum = reader.take<double>();
  info.paused = Duration(reader.take<std::int64_t>());
  info.requests.stop = reader.take<bool>();
  info.requests.evaluate = reader.take<bool>();
  info.requests.checkpoint = reader.take<bool>();
  info.ready = reader.take<bool>();
  info.has_buffers = reader.take<bool>();
  reader.skip(3);
  info.took = Duration(reader.take<std::int64_t>());
  info.weight = reader.take<double>();
  info.progress = reader.take<double>();
  info.settings.learning_rate = reader.take<double>();
  info.settings.checksum = reader.take<std::uint32_t>();
  info.requests.place.number = reader.take<std::uint32_t>();
  info.requests.place.name = reader.take<std::uint32_t>();
  info.gradients =
      GradientSet(tensors, bytes.subspan(fixed_bytes, GradientSet::packed_bytes(tensors)));
  if (like.attendance) {
    ByteReader rest(bytes.last(attendance_bytes));
    info.attendance = attendance_in(rest);
  }
  return info;
}

/// The place at which all workers wait, if they do.
WaitingPlace common_place(const std::vector<StepInfo>& infos) {
  const WaitingPlace first = infos.front().requests.place;
  const bool is_common = std::ranges::all_of(
      infos, [&](const StepInfo& info) { return info.requests.place == first; });
  return is_common ? first : WaitingPlace{};
}

/// The first worker that makes the same call as this one, by its number, at another place. Empty
/// unless all workers wait in that call.
std::optional<Rank> first_elsewhere(const std::vector<StepInfo>& infos, const StepInfo& mine) {
  const WaitingPlace own = mine.requests.place;
  const bool all_wait = std::ranges::all_of(
      infos, [&](const StepInfo& info) { return own && info.requests.place.number == own.number; });
  const auto other =
      std::ranges::find_if(infos, [&](const StepInfo& info) { return info.requests.place != own; });
  return all_wait && other != infos.end()
             ? std::optional(Rank{static_cast<std::uint32_t>(other - infos.begin())})
             : std::nullopt;
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
  const std::size_t bytes = bytes_of(mine);
  std::vector<std::byte> received(group.size() * bytes);
  const TimePoint start = group.world().now();
  allgather(group, pack(mine), received);
  RoundInfo round_info;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const auto each = std::span(received).subspan(rank * bytes, bytes);
    round_info.infos.push_back(unpack(each, mine));
  }
  round_info.sync_round = combine_step_infos(round_info.infos);
  round_info.sync_round.elsewhere = first_elsewhere(round_info.infos, mine);
  const Duration pause_of_others = round_info.sync_round.paused - mine.paused;
  round_info.waited = std::max(Duration::zero(), group.world().now() - start - pause_of_others);
  return round_info;
}

SyncRound combine_step_infos(const std::vector<StepInfo>& infos) {
  SyncRound sync_round{};
  sync_round.gradients = GradientSet(infos.front().gradients.tensors(), /*all=*/false);
  for (const StepInfo& info : infos) {
    sync_round.samples += info.samples;
    sync_round.loss_sum += info.loss_sum;
    sync_round.paused = std::max(sync_round.paused, info.paused);
    sync_round.agreed.merge(info.requests);
    if (info.weight > 0) {
      sync_round.gradients.add(info.gradients);
    }
  }
  sync_round.agreed.place = common_place(infos);
  sync_round.agreed.stop |= sync_round.agreed.place == WaitingPlace::end_of_loop();
  return sync_round;
}

void expect_same_settings(const std::vector<StepInfo>& infos) {
  const auto known = [](const StepInfo& info) { return info.settings.checksum != 0; };
  const auto first = std::ranges::find_if(infos, known);
  const auto other = std::ranges::find_if(infos, [&](const StepInfo& info) {
    return known(info) && info.settings.checksum != first->settings.checksum;
  });
  if (other == infos.end()) {
    return;
  }
  const auto rank = [&](auto info) { return info - infos.begin(); };
  const auto rate = [](auto info) { return fmt::format("{:g}", info->settings.learning_rate); };
  const std::string found =
      rate(first) != rate(other)
          ? fmt::format("the learning rate is {} on worker {} and {} on worker {}", rate(first),
                        rank(first), rate(other), rank(other))
          : fmt::format(
                "momentum, weight decay, parameter groups or another setting differs between "
                "workers {} and {}",
                rank(first), rank(other));
  throw ConfigError(fmt::format(
      "the workers share gradients, and their optimizers would take different steps: {}; "
      "change settings on all workers at the same step, such as by job.scheduler where loops have "
      "unequal lengths, and compute a rate from values that all workers know, such as the mean of "
      "their losses",
      found));
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
