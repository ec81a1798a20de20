#include "scheme/round_book.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/errors.hpp"

namespace syncopate {
namespace {

/// What of all rounds is known to a worker that has been in the last one.
Attendance known_to_the_latest(const std::vector<StepInfo>& infos) {
  const auto last = [](const StepInfo& info) { return info.attendance->last; };
  return *std::ranges::max_element(infos, {}, last)->attendance;
}

}  // namespace

Attendance RoundBook::attendance(std::uint32_t period) const {
  Attendance attendance = done_;
  attendance.period = period;
  return attendance;
}

void RoundBook::complete(const SyncRound& sync_round, std::span<const Rank> ranks,
                         const std::vector<StepInfo>& infos, bool all) {
  const bool all_continue = all && (sync_round.agreed.stop || sync_round.agreed.checkpoint);
  const Attendance known = known_to_the_latest(infos);
  const SyncRound here = combine_step_infos(infos);
  before_ = known.last;
  done_ = {.last = sync_round.round.value,
           .samples = known.samples + here.samples,
           .loss_sum = known.loss_sum + here.loss_sum,
           .paused = known.paused + here.paused};
  for (std::size_t index = 0; index < infos.size(); ++index) {
    const std::uint32_t period = all_continue ? 1 : infos[index].attendance->period;
    next_.at(ranks[index].value) = done_.last + period;
  }
}

void RoundBook::restart(Round last, const std::vector<std::uint32_t>& periods) {
  before_ = last.value;
  done_.last = last.value;
  for (std::size_t rank = 0; rank < next_.size(); ++rank) {
    next_[rank] = last.value + (rank < periods.size() ? periods[rank] : 1);
  }
}

std::vector<std::byte> RoundBook::packed() const {
  std::vector<std::byte> bytes(packed_bytes());
  ByteWriter writer(bytes);
  writer.put(before_)
      .put(done_.last)
      .put(done_.samples)
      .put(done_.loss_sum)
      .put(std::int64_t{done_.paused.count()});
  for (const std::uint64_t next : next_) {
    writer.put(next);
  }
  return bytes;
}

bool RoundBook::load(std::span<const std::byte> packed) {
  ByteReader reader(packed);
  const std::uint64_t last = done_.last;
  before_ = reader.take<std::uint64_t>();
  done_.last = reader.take<std::uint64_t>();
  done_.samples = reader.take<std::uint64_t>();
  done_.loss_sum = reader.take<double>();
  done_.paused = Duration(reader.take<std::int64_t>());
  for (std::uint64_t& next : next_) {
    next = reader.take<std::uint64_t>();
  }
  const bool knows_the_model = last == before_;
  if (!knows_the_model) {
    done_.last = last;
  }
  return knows_the_model;
}

std::uint64_t latest_round(const std::vector<StepInfo>& infos) {
  return known_to_the_latest(infos).last;
}

bool has_missed_rounds(const StepInfo& info, std::uint64_t latest) {
  return info.attendance->last < latest;
}

std::uint64_t samples_with(const std::vector<StepInfo>& infos) {
  return known_to_the_latest(infos).samples + combine_step_infos(infos).samples;
}

void weigh_missed_rounds(std::vector<StepInfo>& infos) {
  const Attendance known = known_to_the_latest(infos);
  const auto missed = [&](const StepInfo& info) { return has_missed_rounds(info, known.last); };
  double here = 0;
  for (const StepInfo& info : infos) {
    here += missed(info) ? 0 : static_cast<double>(info.samples);
  }
  for (StepInfo& info : infos) {
    const auto before = static_cast<double>(known.samples - info.attendance->samples);
    if (missed(info) && here > 0) {
      info.weight *= here / (here + before);
    }
  }
}

void add_missed_rounds(SyncRound& sync_round, const std::vector<StepInfo>& infos,
                       const StepInfo& mine) {
  const Attendance known = known_to_the_latest(infos);
  if (!has_missed_rounds(mine, known.last)) {
    return;
  }
  sync_round.samples += known.samples - mine.attendance->samples;
  sync_round.loss_sum += known.loss_sum - mine.attendance->loss_sum;
  sync_round.paused += known.paused - mine.attendance->paused;
}

}  // namespace syncopate
