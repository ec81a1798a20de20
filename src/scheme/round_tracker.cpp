#include "scheme/round_tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "base/log.hpp"
#include "kernels/optimizer_steps.hpp"
#include "transport/tags.hpp"

namespace syncopate {

void GradientAccumulator::add(std::span<const float> mean, std::uint32_t samples) {
  sum_.resize(mean.size());
  add_scaled(sum_, samples, mean);
  samples_ += samples;
}

void GradientAccumulator::divided_into(std::span<float> into, double divisor) const {
  std::fill(into.begin(), into.end(), 0.0F);
  if (samples_ > 0) {
    add_scaled(into, 1 / divisor, sum_);
  }
}

void GradientAccumulator::clear() {
  std::fill(sum_.begin(), sum_.end(), 0.0F);
  samples_ = 0;
}

void RoundTracker::finished_mini_batch(Round read) {
  read_.push_back(read);
  of_batch_ = (of_batch_ + 1) % mini_batches_;
  batch_finished_ |= of_batch_ == 0;
}

void RoundTracker::on_signal(Round round) {
  signalled_ = std::max(signalled_, round);
}

bool RoundTracker::own_rule_holds() const {
  return forced_due_ ||
         (rule_ == SignalRule::batch ? batch_finished_ : read_.size() >= mini_batches_);
}

RoundTracker::Contribution RoundTracker::contribute() {
  if (!std::exchange(reduced_, false)) {
    throw InternalError(fmt::format(
        "contributed to round {} before the allreduce of the last contribution was complete",
        open_.value));
  }
  Contribution contribution{.round = open_, .staleness = {}};
  for (const Round read : std::exchange(read_, {})) {
    contribution.staleness.push_back(open_.value - 1 - read.value);
  }
  open_.value = std::max(open_, signalled_).value + 1;
  batch_finished_ = false;
  forced_due_ = false;
  return contribution;
}

bool RoundDrain::contributes() {
  spans_rounds_ = tracker_.pending() == 0;
  return paused_ || !spans_rounds_;
}

bool RoundDrain::reduced(const Agreed& agreed) {
  tracker_.reduced();
  pending_ |= agreed.checkpoint;
  const bool checkpoint = pending_ && drains();
  if (drains()) {
    paused_ = stopped_;
    pending_ = false;
  }
  drains_ = agreed.next_is_last || (pending_ && agreed.all_ready);
  if (stopped_ || (drains_ && paused_)) {
    tracker_.force_due();
  }
  return checkpoint;
}

void RoundDrain::stop() {
  stopped_ = paused_ = true;
  tracker_.force_due();
}

bool RoundDrain::pauses() {
  if (every_round_ && !paused_ && tracker_.pending() == 0) {
    return false;  // the others wait for one mini-batch of this worker, even if they signal early
  }
  const bool begins = !paused_ && (drains() ? tracker_.due() : pending_ && spans_rounds_);
  if (begins && !drains()) {
    tracker_.force_due();
  }
  paused_ |= begins;
  return paused_;
}

namespace {

/// The payload of a signal is the number of its round, a u64.
constexpr std::size_t signal_bytes = 8;

Round unpack(const Message& message) {
  if (message.payload.size() != signal_bytes) {
    throw ProtocolError(fmt::format("expected a signal of {} bytes from node {}, found {}",
                                    signal_bytes, message.from.value, message.payload.size()));
  }
  return Round{ByteReader(message.payload).take<std::uint64_t>()};
}

bool is_member(const Group& group, NodeId node) {
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    if (group.node(Rank{rank}) == node) {
      return true;
    }
  }
  return false;
}

}  // namespace

/// Returns the next signal, or nothing if none arrives by the deadline. Drops signals of nodes that
/// are not workers of the job. Errors: the error that ended the job; it may have one of the types
/// that are caught here.
std::optional<Message> RoundSignals::next(TimePoint deadline) {
  try {
    for (;;) {
      Message message = group_.transport().receive(std::nullopt, tags::round_ends, deadline);
      if (is_member(group_, message.from)) {
        return message;
      }
      if (!std::exchange(warned_, true)) {
        log::warn(
            "node {}, which is no worker of this job, sent a signal; such signals are dropped",
            message.from.value);
      }
    }
  } catch (const TimedOut&) {
    if (group_.world().now() < deadline) {
      throw;
    }
    return std::nullopt;  // no signal has arrived
  } catch (const PeerLost&) {
    group_.world().sleep_until(group_.world().now());  // throws once the job has ended
    return std::nullopt;  // the next collective with that peer reports the failure
  }
}

void RoundSignals::broadcast(Round round) {
  std::vector<std::byte> bytes(signal_bytes);
  ByteWriter(bytes).put(round.value);
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    group_.transport().post(group_.node(group_.neighbour(step)), tags::round_ends, bytes);
  }
}

Round RoundSignals::poll() {
  Round latest{};
  if (group_.size() == 1) {
    return latest;
  }
  while (const auto message = next(group_.world().now())) {
    latest = std::max(latest, unpack(*message));
  }
  return latest;
}

Round RoundSignals::wait(TimePoint deadline) {
  const auto first = next(deadline);
  return first ? std::max(unpack(*first), poll()) : Round{};
}

}  // namespace syncopate
