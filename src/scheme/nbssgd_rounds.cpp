#include "scheme/nbssgd_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "base/log.hpp"
#include "kernels/optimizer_steps.hpp"
#include "scheme/buffer_mean.hpp"
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
/// are not workers of the job. Errors: the error that ended the job, which may be a PeerLost, too.
std::optional<Message> RoundSignals::next(TimePoint deadline) {
  try {
    while (auto message =
               group_.transport().try_receive(std::nullopt, tags::round_ends, deadline)) {
      if (is_member(group_, message->from)) {
        return message;
      }
      if (!std::exchange(warned_, true)) {
        log::warn(
            "node {}, which is no worker of this job, sent a signal; such signals are dropped",
            message->from.value);
      }
    }
    return std::nullopt;
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

namespace {

std::size_t results_in(std::size_t bytes, std::size_t params) {
  const std::size_t bytes_each = sizeof(float) * std::max<std::size_t>(1, params);
  return std::max<std::size_t>(2, bytes / bytes_each);
}

void apply_to_buffers(std::span<float> buffers, const NbssgdRound& round) {
  if (round.sync_round.samples > 0) {
    take_late_mean(buffers, round.contributed_buffers, round.buffers);
  }
}

}  // namespace

NbssgdRounds::NbssgdRounds(Group& group, Averaging& averaging, const Options& options)
    : group_(group),
      averaging_(averaging),
      options_(options),
      signals_(group),
      most_results_(results_in(options.queue_bytes, options.params)),
      tracker_(options.batch, options.done, options.signal),
      drain_(tracker_, options.barrier),
      info_(nothing()),
      buffers_(options.buffers),
      taken_(options.done),
      to_rounds_(group.world().make_event()),
      to_worker_(group.world().make_event()) {
  if (group.size() > 1) {
    receives_signals_ = group.world().spawn("signals", [this] { receive_signals(); });
  }
  rounds_ = group.world().spawn("rounds", [this] { run(); });
}

NbssgdRounds::~NbssgdRounds() {
  {
    const MutexLock lock(mutex_);
    abandoned_ = true;
  }
  to_rounds_->notify();
}

void NbssgdRounds::add(std::span<const float> gradient, const GradientSet& tensors,
                       std::span<const float> buffers, const StepFacts& facts) {
  bool due = false;
  {
    const MutexLock lock(mutex_);
    accumulator_.add(gradient, facts.samples);
    buffers_.assign(buffers.begin(), buffers.end());
    for (const auto& round : finished_) {
      apply_to_buffers(buffers_, *round);
    }
    tracker_.finished_mini_batch(taken_);
    info_.samples += facts.samples;
    if (facts.samples > 0) {
      info_.gradients.add(tensors);
    }
    pending_ += facts.samples;
    info_.loss_sum += facts.loss_sum;
    info_.paused = facts.paused;
    info_.requests.stop |= facts.requests.stop;
    info_.requests.checkpoint |= facts.requests.checkpoint;
    info_.requests.place = facts.requests.place;
    if (facts.last) {
      drain_.stop();
    }
    due = may_contribute();
  }
  if (due) {
    to_rounds_->notify();
  }
}

NbssgdRounds::Results NbssgdRounds::take(std::span<float> buffers) {
  const MutexLock lock(mutex_);
  if (finished_.empty() && failure_) {
    std::rethrow_exception(failure_);
  }
  Results results;
  while (!finished_.empty() && (results.empty() || !results.back()->sync_round.agreed.checkpoint)) {
    apply_to_buffers(buffers, *finished_.front());
    taken_ = finished_.front()->sync_round.round;
    pending_ -= finished_.front()->info.samples;
    finished_.front()->sync_round.own_since = pending_;
    results.push_back(std::move(finished_.front()));
    finished_.pop_front();
  }
  return results;
}

void NbssgdRounds::release(Results results) {
  if (results.empty()) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    in_use_ -= results.size();
    std::move(results.begin(), results.end(), std::back_inserter(free_));
  }
  to_rounds_->notify();
}

bool NbssgdRounds::pauses() {
  bool pauses = false;
  {
    const MutexLock lock(mutex_);
    pauses = !ended_ && drain_.pauses();
  }
  if (pauses) {
    to_rounds_->notify();
  }
  return pauses;
}

void NbssgdRounds::wait() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (ended_ || !finished_.empty()) {
        return;
      }
    }
    to_worker_->wait(no_deadline);
  }
}

void NbssgdRounds::leave() {
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      return;
    }
    info_.requests.stop = true;
    drain_.stop();
  }
  to_rounds_->notify();
}

bool NbssgdRounds::ended() {
  const MutexLock lock(mutex_);
  return ended_ && finished_.empty() && !failure_;
}

/// Waits with short deadlines, since only a message wakes it, and checks for the end in between.
void NbssgdRounds::receive_signals() {
  for (;;) {
    const Round signalled = signals_.wait(group_.world().now() + Group::glance);
    bool due = false;
    {
      const MutexLock lock(mutex_);
      if (ended_ || abandoned_) {
        return;
      }
      tracker_.on_signal(signalled);
      due = may_contribute();
    }
    if (due) {
      to_rounds_->notify();
    }
  }
}

void NbssgdRounds::run() noexcept {
  std::exception_ptr failure;
  try {
    run_rounds();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    failure_ = failure;
  }
  to_worker_->notify();
}

void NbssgdRounds::run_rounds() {
  bool ends = false;
  while (!ends) {
    std::unique_ptr<NbssgdRound> round = await_contribution();
    if (!round) {
      return;
    }
    const Averaging::Result result =
        averaging_.synchronize(round->sync_round.round, round->info,
                               {.model = round->gradient.all(), .buffers = round->buffers});
    ends = finish_round(std::move(round), result);
    to_worker_->notify();
  }
}

/// Waits until a contribution is due. Null when the rounds are abandoned.
std::unique_ptr<NbssgdRound> NbssgdRounds::await_contribution() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (abandoned_) {
        return nullptr;
      }
      if (may_contribute()) {
        break;
      }
    }
    to_rounds_->wait(no_deadline);
  }
  return contribute();
}

/// Once true it stays true until the task contributes.
bool NbssgdRounds::may_contribute() const {
  return in_use_ < most_results_ && drain_.may_contribute();
}

std::unique_ptr<NbssgdRound> NbssgdRounds::acquire_round() {
  {
    const MutexLock lock(mutex_);
    ++in_use_;
    if (!free_.empty()) {
      std::unique_ptr<NbssgdRound> room = std::move(free_.back());
      free_.pop_back();
      return room;
    }
  }
  auto room = std::make_unique<NbssgdRound>(group_.transport().shared_memory());
  room->gradient.resize(options_.params);
  return room;
}

std::unique_ptr<NbssgdRound> NbssgdRounds::contribute() {
  std::unique_ptr<NbssgdRound> round = acquire_round();
  bool must_signal = false;
  {
    const MutexLock lock(mutex_);
    must_signal = tracker_.must_signal();
    info_.ready = drain_.contributes();
    RoundTracker::Contribution contribution = tracker_.contribute();
    round->sync_round.round = contribution.round;
    round->exchange = {.round = contribution.round, .begun = group_.world().now()};
    round->staleness = std::move(contribution.staleness);
    round->info = std::exchange(info_, nothing());
    round->contributed_buffers = buffers_;
    std::swap(accumulator_, contribution_);
  }
  if (must_signal) {
    signals_.broadcast(round->sync_round.round);
  }
  contribution_.divided_into(round->gradient.all(), static_cast<double>(contribution_.samples()));
  contribution_.clear();
  round->buffers = round->contributed_buffers;
  return round;
}

/// Queues the result. Returns whether the round was the last.
bool NbssgdRounds::finish_round(std::unique_ptr<NbssgdRound> round,
                                const Averaging::Result& result) {
  const std::vector<StepInfo>& infos = result.round_info.infos;
  const bool all_ready =
      std::all_of(infos.begin(), infos.end(), [](const StepInfo& info) { return info.ready; });
  round->sync_round = result.round_info.sync_round;
  round->communicated = result.communicated;
  round->exchange.ended = group_.world().now();
  StepRequests& agreed = round->sync_round.agreed;
  const MutexLock lock(mutex_);
  ended_ = options_.barrier ? agreed.stop : last_;
  last_ = agreed.stop;
  agreed.stop = ended_;
  agreed.checkpoint = drain_.reduced(
      {.checkpoint = agreed.checkpoint, .all_ready = all_ready, .next_is_last = last_});
  apply_to_buffers(buffers_, *round);
  finished_.push_back(std::move(round));
  return ended_;
}

}  // namespace syncopate
