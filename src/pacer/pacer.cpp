#include "pacer/pacer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "pacer/round_time.hpp"

namespace syncopate {
namespace {

void require(bool holds, Rank worker, const std::string& complaint) {
  if (!holds) {
    throw ProtocolError(fmt::format("step report of worker {}: {}", worker.value, complaint));
  }
}

wire::PacerMemory::Estimate to_wire(const PaceEstimate::Memory& memory) {
  wire::PacerMemory::Estimate estimate;
  estimate.set_mean(memory.mean);
  estimate.set_spread(memory.spread);
  estimate.mutable_recent()->Add(memory.recent.begin(), memory.recent.end());
  estimate.set_last_left_out(memory.last_left_out);
  return estimate;
}

PaceEstimate::Memory from_wire(const wire::PacerMemory::Estimate& estimate) {
  return {.mean = estimate.mean(),
          .spread = estimate.spread(),
          .recent = {estimate.recent().begin(), estimate.recent().end()},
          .last_left_out = estimate.last_left_out()};
}

/// A step that ends a hundredth of itself late ends in time: estimates are no better than that.
constexpr int in_time = 100;

}  // namespace

Pacer::Pacer(Options options)
    : options_(std::move(options)), round_(options_.done + 1), round_time_(options_.round_time) {
  if (round_time_ && *round_time_ <= Duration::zero()) {
    throw ConfigError(fmt::format("--round-time {:g}: expected `auto` or a number above 0",
                                  to_seconds(*round_time_)));
  }
  if (options_.margin && *options_.margin < Duration::zero()) {
    throw ConfigError(fmt::format("--pacing-margin {:g}: expected `auto` or a number from 0",
                                  to_seconds(*options_.margin)));
  }
  for (const std::uint32_t size : options_.batch_sizes) {
    if (size == 0) {
      throw ConfigError("batch size 0: expected at least 1 on every worker");
    }
    workers_.push_back(newcomer(size));
  }
}

Pacer::Worker Pacer::newcomer(std::uint32_t batch_size) const {
  const FirstPace first = first_pace(options_.rule, batch_size);
  Worker worker{.round = round_,
                .told = first.meet_after,
                .batch_size = batch_size,
                .step_samples = first.step_samples,
                .in_hand = first.step_samples,
                .begun = now_};
  if (first.meet_after) {
    worker.reason = PaceReason::first_round;
  }
  return worker;
}

Paces Pacer::stepped(Rank rank, const StepReport& report, TimePoint now) {
  require(rank.value < workers_.size(), rank,
          fmt::format("expected one of {} workers", workers_.size()));
  Worker& worker = workers_[rank.value];
  if (!worker.present) {
    return {};
  }
  expect_possible(rank, report);
  see(now);
  take(worker, report);
  return decide();
}

Paces Pacer::left(Rank rank, TimePoint now) {
  see(now);
  workers_.at(rank.value).present = false;
  return decide();
}

Paces Pacer::joined(Rank rank, TimePoint now) {
  if (rank.value >= workers_.size() || workers_[rank.value].present) {
    throw InternalError(fmt::format("worker {} joined, but is there already, or none of {}",
                                    rank.value, workers_.size()));
  }
  see(now);
  Worker& worker = workers_[rank.value];
  worker = newcomer(worker.batch_size);
  return decide();
}

Paces Pacer::time_passed(TimePoint now) {
  see(now);
  return decide();
}

Paces Pacer::restart(TimePoint now) {
  see(now);
  base_.reset();
  end_.reset();
  for (Worker& worker : workers_) {
    worker.round = round_;
    worker.steps = 0;
    worker.begun = now_;
    worker.in_hand = worker.step_samples;
    if (worker.heard) {
      worker.told.reset();
    }
  }
  return decide();
}

wire::PacerMemory Pacer::memory() const {
  wire::PacerMemory memory;
  for (const Worker& worker : workers_) {
    wire::PacerMemory::Worker& kept = *memory.add_workers();
    kept.set_heard(worker.heard);
    kept.set_step_samples(worker.step_samples);
    *kept.mutable_estimate() = to_wire(worker.estimate.memory());
  }
  *memory.mutable_synchronization() = to_wire(meetings_.memory());
  memory.set_round_time(round_time_.value_or(Duration::zero()).count());
  return memory;
}

void Pacer::load(const wire::PacerMemory& memory) {
  if (static_cast<std::size_t>(memory.workers_size()) != workers_.size()) {
    throw ConfigError(fmt::format("the checkpoint is of {} paced workers, but this job has {}",
                                  memory.workers_size(), workers_.size()));
  }
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const wire::PacerMemory::Worker& kept = memory.workers(static_cast<int>(rank));
    Worker& worker = workers_[rank];
    worker.heard = kept.heard();
    worker.step_samples = kept.step_samples();
    worker.estimate.load(from_wire(kept.estimate()));
  }
  meetings_.load(from_wire(memory.synchronization()));
  if (memory.round_time() > 0 && !options_.round_time) {
    round_time_ = Duration(memory.round_time());
  }
}

void Pacer::see(TimePoint now) {
  now_ = std::max(now_, now);
}

void Pacer::expect_possible(Rank rank, const StepReport& report) const {
  const Worker& worker = workers_[rank.value];
  require(report.round == worker.round, rank,
          fmt::format("expected round {}, found {}", worker.round, report.round));
  require(report.steps > worker.steps, rank,
          fmt::format("expected step {} of round {}, found {}", worker.steps + 1, worker.round,
                      report.steps));
  require(report.took >= Duration::zero() && report.communicated >= Duration::zero(), rank,
          "a duration is negative");
  require(!report.meets || report.round == round_, rank,
          fmt::format("it meets in round {}, but round {} is not complete", report.round, round_));
}

void Pacer::take(Worker& worker, const StepReport& report) {
  worker.heard = true;
  worker.estimate.heard(report.samples, report.took);
  if (report.communicated > Duration::zero()) {
    meetings_.heard(1, report.communicated);
  }
  worker.steps = report.steps;
  worker.begun = now_;
  worker.in_hand = worker.step_samples;
  if (report.meets) {
    ++worker.round;
    worker.steps = 0;
    worker.told.reset();
  }
}

Paces Pacer::decide() {
  if (is_complete()) {
    open_next_round();
  }
  if (!end_ && options_.rule == Rule::timed && everyone_heard()) {
    plan();
  }
  Paces paces;
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (const auto pace = next_pace(Rank{rank})) {
      paces.push_back(*pace);
    }
  }
  return paces;
}

bool Pacer::is_complete() const {
  const auto open = [this](const Worker& worker) {
    return worker.present && worker.round == round_;
  };
  const auto present = [](const Worker& worker) { return worker.present; };
  return std::ranges::any_of(workers_, present) && std::ranges::none_of(workers_, open);
}

bool Pacer::everyone_heard() const {
  return std::ranges::all_of(workers_,
                             [](const Worker& worker) { return worker.heard || !worker.present; });
}

void Pacer::open_next_round() {
  ++round_;
  base_ = std::max(end_.value_or(now_), now_);
  end_.reset();
  if (options_.overlap) {
    return;
  }
  for (Worker& worker : workers_) {
    worker.begun = now_ + meeting_time();
  }
}

void Pacer::plan() {
  if (!options_.round_time) {
    const Duration wanted = wanted_round_time();
    round_time_ = round_time_ ? followed(*round_time_, wanted) : wanted;
  }
  end_ = base_.value_or(now_) + *round_time_;
}

/// As those tell who were heard.
Duration Pacer::wanted_round_time() const {
  std::vector<DeviceSpeed> devices;
  for (const Worker& worker : workers_) {
    if (worker.present && worker.estimate.known()) {
      devices.push_back({worker.estimate.sample_seconds(), worker.batch_size});
    }
  }
  return shortest_round(devices, meeting_time(), !options_.overlap);
}

std::optional<Pace> Pacer::next_pace(Rank rank) {
  Worker& worker = workers_[rank.value];
  if (!worker.present) {
    return std::nullopt;
  }
  const std::uint32_t before = std::exchange(worker.step_samples, size_for(worker));
  const std::optional<PaceReason> meets = reason_to_meet(worker);
  if (!meets && worker.step_samples == before) {
    return std::nullopt;
  }
  worker.reason = meets.value_or(PaceReason::resized);
  if (meets) {
    worker.told = worker.steps + 1;
  }
  return Pace{.worker = rank,
              .round = worker.round,
              .meet_after = worker.told,
              .step_samples = worker.step_samples,
              .reason = *worker.reason};
}

std::uint32_t Pacer::size_for(const Worker& worker) const {
  if (options_.rule == Rule::paper || !worker.estimate.known()) {
    return worker.step_samples;
  }
  // Until the slowest is heard, nobody else shall train on probes: those that are known plan by
  // themselves.
  const Duration round_time = round_time_ ? *round_time_ : wanted_round_time();
  const Duration waiting = options_.overlap ? Duration::zero() : meeting_time();
  return fitting_samples({worker.estimate.sample_seconds(), worker.batch_size},
                         round_time - waiting, worker.step_samples);
}

std::optional<PaceReason> Pacer::reason_to_meet(const Worker& worker) const {
  if (worker.told || worker.round != round_ || !everyone_heard()) {
    return std::nullopt;
  }
  return options_.rule == Rule::paper ? reason_by_paper(worker) : reason_by_time(worker);
}

std::optional<PaceReason> Pacer::reason_by_paper(const Worker& worker) const {
  const Worker& last = slowest();
  if (&worker == &last) {
    return PaceReason::slowest;
  }
  if (last.round > round_) {
    return PaceReason::with_the_slowest;
  }
  const Duration margin = options_.margin.value_or(last.estimate.margin(last.in_hand));
  if (expected_end(worker) + step_time(worker) + margin > expected_end(last)) {
    return PaceReason::no_time_for_another;
  }
  return std::nullopt;
}

std::optional<PaceReason> Pacer::reason_by_time(const Worker& worker) const {
  const TimePoint end = expected_end(worker);
  const TimePoint next = end + step_time(worker);
  const bool meets =
      options_.overlap ? end - *end_ >= *end_ - next : next > *end_ + step_time(worker) / in_time;
  return meets ? std::optional(PaceReason::no_time_for_another) : std::nullopt;
}

const Pacer::Worker& Pacer::slowest() const {
  const auto time = [this](const Worker& worker) {
    return worker.present ? step_time(worker) : Duration(-1);
  };
  return *std::ranges::max_element(workers_, {}, time);
}

Duration Pacer::step_time(const Worker& worker) const {
  return worker.estimate.step_time(worker.step_samples);
}

TimePoint Pacer::expected_end(const Worker& worker) const {
  return std::max(worker.begun + worker.estimate.step_time(worker.in_hand), now_);
}

bool Pacer::is_overdue(const Worker& worker) const {
  const bool computes = worker.present && (options_.overlap || worker.round == round_);
  const Duration usual = worker.estimate.step_time(worker.in_hand);
  return computes && worker.estimate.known() &&
         now_ > worker.begun + usual + worker.estimate.margin(worker.in_hand);
}

Duration Pacer::meeting_time() const {
  return meetings_.step_time(1);
}

PacerState Pacer::state() const {
  PacerState state{.round = round_,
                   .round_time = round_time_.value_or(Duration::zero()),
                   .communication = meeting_time()};
  if (options_.rule == Rule::paper && !workers_.empty()) {
    const Duration waiting = options_.overlap ? Duration::zero() : meeting_time();
    state.round_time = step_time(slowest()) + waiting;
  }
  for (const Worker& worker : workers_) {
    state.workers.push_back(state_of(worker));
  }
  return state;
}

PacerState::Worker Pacer::state_of(const Worker& worker) const {
  return {.present = worker.present,
          .step_seconds = to_seconds(step_time(worker)),
          .sample_seconds = worker.estimate.sample_seconds(),
          .round = worker.round,
          .steps = worker.steps,
          .meet_after = worker.told,
          .step_samples = worker.step_samples,
          .reason = worker.reason,
          .overdue = is_overdue(worker)};
}

}  // namespace syncopate
