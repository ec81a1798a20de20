#include "scheme/nbssgd_rounds.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/optimizer_steps.hpp"
#include "scheme/late_mean.hpp"

namespace syncopate {
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
                       const StepFacts& facts) {
  bool due = false;
  {
    const MutexLock lock(mutex_);
    accumulator_.add(gradient, facts.samples);
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
  buffers_.assign(buffers.begin(), buffers.end());
  for (const auto& round : finished_) {
    apply_to_buffers(buffers_, *round);
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
