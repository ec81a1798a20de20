#include "scheme/recovery.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "results travel in little-endian order");

/// What a meeting came to, as it travels.
struct MeetingBytes {
  std::uint64_t round;
  std::uint64_t samples;
  double loss_sum;
  std::int64_t paused_ns;
  std::uint8_t stop;
  std::uint8_t evaluate;
  std::uint8_t checkpoint;
  std::uint8_t unused[5];
};
static_assert(sizeof(MeetingBytes) == 40 && std::is_trivially_copyable_v<MeetingBytes>);

MeetingBytes pack(const Meeting& meeting) {
  return {meeting.round.value,       meeting.samples,
          meeting.loss_sum,          meeting.paused.count(),
          meeting.agreed.stop,       meeting.agreed.evaluate,
          meeting.agreed.checkpoint, {}};
}

Meeting unpack(const MeetingBytes& bytes) {
  return {.round = Round{bytes.round},
          .samples = bytes.samples,
          .loss_sum = bytes.loss_sum,
          .paused = Duration(bytes.paused_ns),
          .agreed = {.stop = bytes.stop != 0,
                     .evaluate = bytes.evaluate != 0,
                     .checkpoint = bytes.checkpoint != 0}};
}

}  // namespace

Recovery::Recovery(Group& group)
    : group_(group), losses_(*group.failures()), rounds_({.floor = Duration::zero()}) {}

bool Recovery::survives(const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    group_.drop_lost();
    work();
    return true;
  } catch (const ViewChanged&) {
    error = std::current_exception();
  } catch (const PeerLost&) {
    error = std::current_exception();
  } catch (const TimedOut&) {
    error = std::current_exception();
  }
  await_verdict(error);
  return false;
}

/// Who was lost, the coordinator says: it may not be the one that this worker misses.
void Recovery::await_verdict(const std::exception_ptr& error) {
  if (!losses_.await_more(group_.generation(), group_.deadline())) {
    std::rethrow_exception(error);
  }
}

void Recovery::begin(Round round, const MeetingValues& values) {
  wanted_ = round;
  copy(values, brought_);
}

std::optional<Meeting> Recovery::settle(const MeetingValues& values) {
  copy(brought_, values);
  if (settled_ == group_.generation()) {
    return std::nullopt;
  }
  const std::vector<Round> wanted = wanted_by_all();
  const auto latest = std::max_element(wanted.begin(), wanted.end());
  const Rank owner{static_cast<std::uint32_t>(latest - wanted.begin())};
  const bool owns = owner == group_.rank();
  std::optional<Meeting> meeting;
  if (wanted_ < *latest) {
    meeting = take_over(owner, values);
  }
  for (std::uint32_t rank = 0; owns && rank < group_.size(); ++rank) {
    if (wanted[rank] < *latest) {
      hand_over(group_.node(Rank{rank}));
    }
  }
  settled_ = group_.generation();
  return meeting;
}

std::vector<Round> Recovery::wanted_by_all() {
  static_assert(std::is_trivially_copyable_v<Round>);
  std::vector<Round> wanted(group_.size());
  allgather(group_, std::as_bytes(std::span(&wanted_, 1)),
            std::as_writable_bytes(std::span(wanted)));
  return wanted;
}

void Recovery::hand_over(NodeId to) {
  const MeetingBytes meeting = pack(kept_meeting_);
  const Tag tag = group_.tag(tags::handover);
  Transport& transport = group_.transport();
  send(transport, to, tag, std::as_bytes(std::span(&meeting, 1)), group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(kept_.model)), group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(kept_.buffers)), group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(kept_.control)), group_.deadline());
}

Meeting Recovery::take_over(Rank from, const MeetingValues& values) {
  MeetingBytes meeting{};
  const auto receive = [&](std::span<std::byte> into) {
    const auto transfer =
        group_.transport().start_receive(group_.node(from), group_.tag(tags::handover), into);
    group_.await(*transfer, from, "handover");
  };
  receive(std::as_writable_bytes(std::span(&meeting, 1)));
  receive(std::as_writable_bytes(values.model));
  receive(std::as_writable_bytes(values.buffers));
  receive(std::as_writable_bytes(values.control));
  return unpack(meeting);
}

void Recovery::keep(const Meeting& meeting, const MeetingValues& values) {
  const TimePoint now = group_.world().now();
  if (ended_) {
    rounds_.observed(now - *ended_);
  }
  ended_ = now;
  group_.waits().allow(rounds_.limit());
  copy(values, kept_);
  kept_meeting_ = meeting;
  ++wanted_.value;
}

void Recovery::settle_losses() {
  while (losses_.lost().size() > group_.generation()) {
    brought_ = {};
    survives([this] { settle({}); });
  }
}

void Recovery::stay() {
  losses_.finished();
  brought_ = {};
  while (losses_.await_more(group_.generation(), no_deadline) && !losses_.all_finished()) {
    survives([this] { settle({}); });
  }
}

void Recovery::copy(const MeetingValues& from, Parts& to) {
  to.model.assign(from.model.begin(), from.model.end());
  to.buffers.assign(from.buffers.begin(), from.buffers.end());
  to.control.assign(from.control.begin(), from.control.end());
}

void Recovery::copy(const Parts& from, const MeetingValues& to) {
  std::copy(from.model.begin(), from.model.end(), to.model.begin());
  std::copy(from.buffers.begin(), from.buffers.end(), to.buffers.begin());
  std::copy(from.control.begin(), from.control.end(), to.control.begin());
}

}  // namespace syncopate
