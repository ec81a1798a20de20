#include "scheme/recovery.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// Wire format of a result: u64 round, u64 samples, f64 loss sum, i64 pause in ns, 3 flags (stop,
/// evaluate, checkpoint), 5 zeros.
constexpr std::size_t sync_round_bytes = 40;
using SyncRoundBytes = std::array<std::byte, sync_round_bytes>;

SyncRoundBytes pack(const SyncRound& sync_round) {
  SyncRoundBytes bytes{};
  ByteWriter(bytes)
      .put(sync_round.round.value)
      .put(sync_round.samples)
      .put(sync_round.loss_sum)
      .put(std::int64_t{sync_round.paused.count()})
      .put(sync_round.agreed.stop)
      .put(sync_round.agreed.evaluate)
      .put(sync_round.agreed.checkpoint)
      .put_zeros(5);
  return bytes;
}

SyncRound unpack(const SyncRoundBytes& bytes) {
  ByteReader reader(bytes);
  SyncRound sync_round;
  sync_round.round = Round{reader.take<std::uint64_t>()};
  sync_round.samples = reader.take<std::uint64_t>();
  sync_round.loss_sum = reader.take<double>();
  sync_round.paused = Duration(reader.take<std::int64_t>());
  sync_round.agreed.stop = reader.take<bool>();
  sync_round.agreed.evaluate = reader.take<bool>();
  sync_round.agreed.checkpoint = reader.take<bool>();
  return sync_round;
}

}  // namespace

Recovery::Recovery(Group& group, std::size_t notes)
    : group_(group),
      failures_(*group.failures()),
      finished_{.sync_round = {}, .note = std::vector<std::byte>(notes)},
      rounds_({.floor = Duration::zero()}) {}

bool Recovery::run_or_regroup(const std::function<void()>& work) {
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
  await_regroup(error);
  return false;
}

/// Waits until the coordinator reports a failed member, which need not be the one that this worker
/// waited for. Rethrows `error` if no report arrives before the deadline.
void Recovery::await_regroup(const std::exception_ptr& error) {
  if (!failures_.await_more(group_.generation(), group_.deadline())) {
    std::rethrow_exception(error);
  }
}

void Recovery::begin(Round round, std::size_t tensors, const SyncValues& values) {
  wanted_ = round;
  tensors_ = tensors;
  copy(values, contributed_);
}

std::optional<Recovery::Finished> Recovery::agree(const SyncValues& values) {
  copy(contributed_, values);
  if (agreed_generation_ == group_.generation()) {
    return std::nullopt;
  }
  const std::vector<Stand> stands = gather_stands();
  const auto latest = std::ranges::max_element(stands, {}, &Stand::has);
  const auto lacks = [&](const Stand& stand) { return stand.wanted <= latest->has; };
  const Rank owner{static_cast<std::uint32_t>(latest - stands.begin())};
  const bool owns = owner == group_.rank();
  std::optional<Finished> finished;
  if (lacks(stands[group_.rank().value])) {
    finished = receive_result(owner, values);
  }
  for (std::uint32_t rank = 0; owns && rank < group_.size(); ++rank) {
    if (lacks(stands[rank])) {
      send_result(group_.node(Rank{rank}));
    }
  }
  agreed_generation_ = group_.generation();
  return finished;
}

std::vector<Recovery::Stand> Recovery::gather_stands() {
  static_assert(std::is_trivially_copyable_v<Stand>);
  const Stand mine{.wanted = wanted_, .has = finished_.sync_round.round};
  std::vector<Stand> stands(group_.size());
  allgather(group_, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(stands)));
  return stands;
}

void Recovery::send_result(NodeId to) {
  const SyncRoundBytes sync_round = pack(finished_.sync_round);
  const Tag tag = group_.tag(tags::handover);
  Transport& transport = group_.transport();
  send(transport, to, tag, sync_round, group_.deadline());
  send(transport, to, tag, finished_.sync_round.gradients.packed(), group_.deadline());
  send(transport, to, tag, finished_.note, group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(result_.model)), group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(result_.buffers)), group_.deadline());
  send(transport, to, tag, std::as_bytes(std::span(result_.control)), group_.deadline());
}

Recovery::Finished Recovery::receive_result(Rank from, const SyncValues& values) {
  SyncRoundBytes bytes{};
  std::vector<std::byte> gradients(GradientSet::packed_bytes(tensors_));
  const auto receive = [&](std::span<std::byte> into) {
    const auto transfer =
        group_.transport().start_receive(group_.node(from), group_.tag(tags::handover), into);
    group_.await(*transfer, from, "handover");
  };
  receive(bytes);
  receive(gradients);
  std::vector<std::byte> note(finished_.note.size());
  receive(note);
  receive(values.model.bytes());
  receive(std::as_writable_bytes(values.buffers));
  receive(std::as_writable_bytes(values.control));
  SyncRound sync_round = unpack(bytes);
  sync_round.gradients = GradientSet(tensors_, gradients);
  return {.sync_round = sync_round, .note = std::move(note)};
}

void Recovery::keep(const Finished& finished, const SyncValues& values, std::uint32_t period) {
  const TimePoint now = group_.world().now();
  if (ended_) {
    rounds_.observed(now - *ended_);
  }
  ended_ = now;
  group_.waits().allow(rounds_.limit());
  copy(values, result_);
  finished_ = finished;
  wanted_ = Round{finished.sync_round.round.value + period};
}

void Recovery::agree_after_failures() {
  while (failures_.lost().size() > group_.generation()) {
    contributed_ = {};
    run_or_regroup([this] { agree({}); });
  }
}

void Recovery::linger() {
  failures_.finished();
  contributed_ = {};
  while (failures_.await_more(group_.generation(), no_deadline) && !failures_.all_finished()) {
    run_or_regroup([this] { agree({}); });
  }
}

void Recovery::copy(const SyncValues& from, Copies& to) {
  const std::span<float> model = from.model.floats();
  to.model.assign(model.begin(), model.end());
  to.buffers.assign(from.buffers.begin(), from.buffers.end());
  to.control.assign(from.control.begin(), from.control.end());
}

void Recovery::copy(const Copies& from, const SyncValues& to) {
  std::ranges::copy(from.model, to.model.floats().begin());
  std::copy(from.buffers.begin(), from.buffers.end(), to.buffers.begin());
  std::copy(from.control.begin(), from.control.end(), to.control.begin());
}

}  // namespace syncopate
