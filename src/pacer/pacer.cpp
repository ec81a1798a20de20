#include "pacer/pacer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "pacer/round_plan.hpp"

namespace syncopate {
namespace {

void require(bool holds, Rank worker, const std::string& complaint) {
  if (!holds) {
    throw ProtocolError(fmt::format("step report of worker {}: {}", worker.value, complaint));
  }
}

wire::PacerMemory::Estimate to_wire(const PaceEstimate::State& state) {
  wire::PacerMemory::Estimate estimate;
  estimate.set_mean(state.mean);
  estimate.set_spread(state.spread);
  estimate.mutable_recent()->Add(state.recent.begin(), state.recent.end());
  estimate.set_last_left_out(state.last_ignored);
  return estimate;
}

PaceEstimate::State from_wire(const wire::PacerMemory::Estimate& estimate) {
  return {.mean = estimate.mean(),
          .spread = estimate.spread(),
          .recent = {estimate.recent().begin(), estimate.recent().end()},
          .last_ignored = estimate.last_left_out()};
}

}  // namespace

Pacer::Pacer(Options options)
    : options_(std::move(options)),
      round_(options_.done + 1),
      base_(options_.done),
      plan_({.round_time = options_.round_time,
             .overlap = options_.overlap,
             .longest_period = options_.longest_period}) {
  if (options_.round_time && *options_.round_time <= Duration::zero()) {
    throw ConfigError(fmt::format("--round-time {:g}: expected `auto` or a number above 0",
                                  to_seconds(*options_.round_time)));
  }
  if (options_.margin && *options_.margin < Duration::zero()) {
    throw ConfigError(fmt::format("--pacing-margin {:g}: expected `auto` or a number from 0",
                                  to_seconds(*options_.margin)));
  }
  for (const std::uint32_t size : options_.batch_sizes) {
    if (size == 0) {
      throw ConfigError("batch size 0: expected at least 1 on every worker");
    }
    workers_.push_back(new_worker(size));
  }
}

Pacer::Worker Pacer::new_worker(std::uint32_t batch_size) const {
  const FirstPace first =
      first_pace(options_.rule, batch_size, options_.global_batch > 0 ? options_.least_part : 0);
  Worker worker{.round = round_,
                .sync_after = first.sync_after,
                .batch_size = batch_size,
                .least_part = options_.least_part,
                .step_samples = first.step_samples,
                .current_samples = first.step_samples,
                .step_began = now_};
  if (first.sync_after) {
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
  advance_to(now);
  record(worker, report);
  return decide();
}

Paces Pacer::left(Rank rank, TimePoint now) {
  advance_to(now);
  workers_.at(rank.value).present = false;
  return decide();
}

Paces Pacer::joined(Rank rank, TimePoint now) {
  if (rank.value >= workers_.size() || workers_[rank.value].present) {
    throw InternalError(
        fmt::format("worker {} joined, but is already present or none of {} workers", rank.value,
                    workers_.size()));
  }
  advance_to(now);
  Worker& worker = workers_[rank.value];
  const std::uint32_t least_part = worker.least_part;
  worker = new_worker(worker.batch_size);
  worker.least_part = least_part;
  return decide();
}

Paces Pacer::time_passed(TimePoint now) {
  advance_to(now);
  return decide();
}

void Pacer::expect(Rank rank, double sample_seconds) {
  Worker& worker = workers_.at(rank.value);
  if (options_.rule == Rule::timed && !worker.reported) {
    worker.reported = true;
    worker.estimate.observe(worker.batch_size, from_seconds(sample_seconds * worker.batch_size));
  }
}

void Pacer::expect_least(Rank rank, std::uint32_t samples) {
  Worker& worker = workers_.at(rank.value);
  worker.least_part = std::max(options_.least_part, samples);
}

std::vector<std::uint32_t> Pacer::periods_at_restart() const {
  std::vector<std::uint32_t> periods(workers_.size(), 1);
  std::vector<DeviceSpeed> devices = known_speeds();
  const auto present = std::ranges::count_if(workers_, &Worker::present);
  if (options_.longest_period == 1 || std::ssize(devices) < present) {
    return periods;
  }
  if (options_.global_batch > 0) {
    divide_global_batch(devices, options_.global_batch);
  }
  const Duration round_time = plan_.round_time().value_or(plan_.wanted_round_time(devices));
  auto device = devices.begin();
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].present) {
      periods[rank] = period_of(*device++, round_time, 1, options_.longest_period);
    }
  }
  return periods;
}

Paces Pacer::restart(TimePoint now) {
  advance_to(now);
  const std::vector<std::uint32_t> periods = periods_at_restart();
  auto period = periods.begin();
  plan_.restart();
  base_ = round_ - 1;
  for (Worker& worker : workers_) {
    worker.period = *period++;
    worker.rounds = worker.period;
    worker.round = base_ + worker.rounds;
    worker.unsent |= options_.longest_period > 1;
    worker.steps = 0;
    worker.step_began = now_;
    worker.current_samples = worker.step_samples;
    if (worker.reported) {
      worker.sync_after.reset();
    }
  }
  return decide();
}

wire::PacerMemory Pacer::memory() const {
  wire::PacerMemory memory;
  for (const Worker& worker : workers_) {
    wire::PacerMemory::Worker& kept = *memory.add_workers();
    kept.set_heard(worker.reported);
    kept.set_step_samples(worker.step_samples);
    *kept.mutable_estimate() = to_wire(worker.estimate.state());
  }
  *memory.mutable_synchronization() = to_wire(plan_.synchronizations().state());
  memory.set_round_time(plan_.round_time().value_or(Duration::zero()).count());
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
    worker.reported = kept.heard();
    worker.step_samples = kept.step_samples();
    worker.estimate.load(from_wire(kept.estimate()));
  }
  plan_.load(from_wire(memory.synchronization()), Duration(memory.round_time()));
}

void Pacer::advance_to(TimePoint now) {
  now_ = std::max(now_, now);
}

void Pacer::expect_possible(Rank rank, const StepReport& report) const {
  const Worker& worker = workers_[rank.value];
  const bool is_early =  // all workers are in a round that the worker was to miss
      report.round < worker.round && report.round + worker.rounds > worker.round;
  require(report.round == worker.round || is_early, rank,
          fmt::format("expected round {}, found {}", worker.round, report.round));
  require(report.steps > worker.steps, rank,
          fmt::format("expected step {} of round {}, found {}", worker.steps + 1, worker.round,
                      report.steps));
  require(report.took >= Duration::zero() && report.communicated >= Duration::zero(), rank,
          "a duration is negative");
  require(!report.synchronizes || is_open_to(worker), rank,
          fmt::format("it synchronizes in round {}, but round {} is not complete", report.round,
                      round_));
}

void Pacer::record(Worker& worker, const StepReport& report) {
  worker.reported = true;
  worker.estimate.observe(report.samples, report.took);
  if (report.communicated > Duration::zero()) {
    plan_.observe_synchronization(report.round, report.communicated);
  }
  if (samples_to_do_ == 0) {
    samples_to_do_ = report.samples_to_do;
  }
  ends_ |= report.ends;
  worker.waits = report.waits;
  worker.steps = report.steps;
  worker.samples += report.samples;
  worker.step_began = now_;
  worker.current_samples = worker.step_samples;
  worker.round = report.round;
  if (report.synchronizes) {
    worker.round += report.period;
    worker.rounds = report.period;
    worker.steps = 0;
    samples_ += std::exchange(worker.samples, 0);
    worker.sync_after.reset();
  }
}

Paces Pacer::decide() {
  while (is_complete()) {
    open_next_round();
  }
  if (!plan_.is_planned() && options_.rule == Rule::timed && all_reported()) {
    if (options_.global_batch > 0) {
      divide_batch();
    }
    plan_.plan(known_speeds(), now_);
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
    return worker.present && worker.round <= round_;
  };
  const auto present = [](const Worker& worker) { return worker.present; };
  return std::ranges::any_of(workers_, present) && std::ranges::none_of(workers_, open);
}

bool Pacer::all_reported() const {
  return std::ranges::all_of(
      workers_, [](const Worker& worker) { return worker.reported || !worker.present; });
}

/// The steps of a worker that is gone do not count, unless they have entered a synchronization.
bool Pacer::is_at_the_end() const {
  std::uint64_t samples = samples_;
  for (const Worker& worker : workers_) {
    samples += worker.present ? worker.samples : 0;
  }
  return ends_ || (samples_to_do_ > 0 && samples >= samples_to_do_);
}

/// Nobody has samples for the rest of the round, which may be long.
bool Pacer::all_wait() const {
  return std::ranges::all_of(workers_,
                             [](const Worker& worker) { return worker.waits || !worker.present; });
}

void Pacer::open_next_round() {
  ++round_;
  plan_.open_next(now_);
  if (options_.overlap) {
    return;
  }
  for (Worker& worker : workers_) {
    worker.step_began = now_ + plan_.synchronization_time();
  }
}

/// The speeds of the workers that are present and have reported a step.
std::vector<DeviceSpeed> Pacer::known_speeds() const {
  std::vector<DeviceSpeed> devices;
  for (const Worker& worker : workers_) {
    if (worker.present && worker.estimate.known()) {
      devices.push_back(speed_of(worker));
    }
  }
  return devices;
}

DeviceSpeed Pacer::speed_of(const Worker& worker) const {
  return {.sample_seconds = worker.estimate.sample_seconds(),
          .batch_size = worker.batch_size,
          .part = worker.part,
          .least_part = worker.least_part};
}

/// Once in a round, where the speed of each device is known.
void Pacer::divide_batch() {
  std::vector<DeviceSpeed> devices = known_speeds();
  divide_global_batch(devices, options_.global_batch);
  auto divided = devices.begin();
  for (Worker& worker : workers_) {
    if (worker.present && worker.estimate.known()) {
      worker.part = (divided++)->part;
    }
  }
}

std::optional<Pace> Pacer::next_pace(Rank rank) {
  Worker& worker = workers_[rank.value];
  if (!worker.present) {
    return std::nullopt;
  }
  const std::uint32_t period_before = std::exchange(worker.period, period_for(worker));
  const std::uint32_t before = std::exchange(worker.step_samples, size_for(worker));
  const std::optional<PaceReason> sync_reason = reason_to_synchronize(worker);
  const bool changed = worker.step_samples != before || worker.period != period_before;
  if (!sync_reason && !changed && !worker.unsent) {
    return std::nullopt;
  }
  worker.unsent = false;
  worker.reason = sync_reason.value_or(PaceReason::resized);
  if (sync_reason) {
    worker.sync_after = worker.steps + 1;
    worker.step_samples = size_for(worker);
  }
  return Pace{.worker = rank,
              .round = worker.round,
              .sync_after = worker.sync_after,
              .step_samples = worker.step_samples,
              .period = worker.period,
              .whole = worker.part,
              .reason = *worker.reason};
}

/// Near the end of the job every worker is in every round: the last one is a round of all.
std::uint32_t Pacer::period_for(const Worker& worker) const {
  if (options_.longest_period == 1 || !worker.estimate.known() || is_at_the_end()) {
    return 1;
  }
  return plan_.period_of(speed_of(worker), worker.period);
}

std::uint32_t Pacer::size_for(const Worker& worker) const {
  if (options_.rule == Rule::paper || !worker.estimate.known()) {
    return worker.step_samples;
  }
  // The devices of known speed make a plan, so no worker trains on probes until the slowest
  // reports.
  return fitting_samples(speed_of(worker),
                         plan_.computing_time(known_speeds(), rounds_of_next_step(worker)),
                         worker.step_samples);
}

/// How many rounds the step after the current one belongs to.
std::uint32_t Pacer::rounds_of_next_step(const Worker& worker) const {
  return worker.sync_after && worker.steps + 1 >= *worker.sync_after
             ? adopted_period(worker.round, base_, worker.period)
             : worker.rounds;
}

std::optional<PaceReason> Pacer::reason_to_synchronize(const Worker& worker) const {
  if (worker.sync_after || !is_open_to(worker) || !all_reported()) {
    return std::nullopt;
  }
  return options_.rule == Rule::paper ? reason_by_paper(worker) : reason_by_time(worker);
}

/// Every worker has entered the last synchronization of this one.
bool Pacer::is_open_to(const Worker& worker) const {
  return worker.round < round_ + worker.rounds;
}

std::optional<PaceReason> Pacer::reason_by_paper(const Worker& worker) const {
  const Worker& last = slowest();
  if (&worker == &last) {
    return PaceReason::slowest;
  }
  if (last.round > round_) {
    return PaceReason::with_the_slowest;
  }
  const Duration margin = options_.margin.value_or(last.estimate.margin(last.current_samples));
  if (expected_end(worker) + step_time(worker) + margin > expected_end(last)) {
    return PaceReason::no_time_for_another;
  }
  return std::nullopt;
}

std::optional<PaceReason> Pacer::reason_by_time(const Worker& worker) const {
  if (is_at_the_end()) {
    return PaceReason::job_ends;
  }
  if (all_wait()) {
    return PaceReason::all_wait;
  }
  const TimePoint end = expected_end(worker);
  const Duration step = step_time(worker);
  const bool ends =
      worker.rounds > 1
          ? plan_.ends_rounds(end, step, worker.round - std::min(round_, worker.round))
          : plan_.ends_round(end, step);
  return ends ? std::optional(PaceReason::no_time_for_another) : std::nullopt;
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
  return std::max(worker.step_began + worker.estimate.step_time(worker.current_samples), now_);
}

bool Pacer::is_overdue(const Worker& worker) const {
  const bool computes = worker.present && (options_.overlap || worker.round == round_);
  const Duration usual = worker.estimate.step_time(worker.current_samples);
  return computes && worker.estimate.known() &&
         now_ > worker.step_began + usual + worker.estimate.margin(worker.current_samples);
}

PacerState Pacer::state() const {
  PacerState state{.round = round_,
                   .round_time = plan_.round_time().value_or(Duration::zero()),
                   .communication = plan_.synchronization_time()};
  if (options_.rule == Rule::paper && !workers_.empty()) {
    state.round_time = step_time(slowest()) + plan_.waiting_time();
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
          .sync_after = worker.sync_after,
          .step_samples = worker.step_samples,
          .reason = worker.reason,
          .overdue = is_overdue(worker),
          .period = worker.period};
}

}  // namespace syncopate
