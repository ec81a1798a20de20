#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "kernels/reduce.hpp"
#include "report/counts.hpp"

namespace syncopate {
namespace {

/// Batches in a row whose gradients are not finite: the fault is the model's then, not theirs.
constexpr std::uint64_t hopeless = 100;

JsonLines::Mode mode_of(const Progress& start) {
  return start == Progress{} ? JsonLines::Mode::create : JsonLines::Mode::append;
}

std::uint64_t train_samples(const Trainer::Options& options) {
  return options.dataset.train.samples();
}

double steps_per_epoch(const Trainer::Options& options) {
  return options.sync_mode == SyncMode::lockstep
             ? static_cast<double>(options.feed.steps_per_epoch())
             : static_cast<double>(train_samples(options)) / options.samples_per_step;
}

/// Where a checkpoint does not say how far this worker had come, it had taken a mini-batch a step, or
/// `step_samples` of one; or, where workers are not in step, it goes on as far as all have come in all
/// the data.
DataPosition position_at(const Trainer::Options& options, std::uint32_t step_samples) {
  if (options.resumed) {
    return options.resumed->position;
  }
  if (options.sync_mode == SyncMode::local_rounds) {
    const double steps = static_cast<double>(options.start.samples) / options.samples_per_step;
    return {.batch = static_cast<std::uint64_t>(steps)};
  }
  if (step_samples == 0) {
    return {.batch = options.start.step};
  }
  const std::uint64_t steps_each = (options.batch_size + step_samples - 1) / step_samples;
  return {.batch = options.start.step / steps_each,
          .taken = options.start.step % steps_each * step_samples};
}

MicroBatcher::Empty empty_batches(const Trainer::Options& options) {
  return options.sync_mode == SyncMode::local_rounds ? MicroBatcher::Empty::passed_over
                                                     : MicroBatcher::Empty::kept;
}

double mean(double sum, std::uint64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace

Trainer::Trainer(World& world, MemberLink& link, Replica& replica, Scheme& scheme, Options options)
    : world_(world),
      link_(link),
      replica_(replica),
      scheme_(scheme),
      options_(std::move(options)),
      schedule_(schedule_of(options_.config)),
      evaluations_(options_.config.eval_every, steps_per_epoch(options_)),
      checkpoints_(options_.config.checkpoint_every, steps_per_epoch(options_)),
      begins_at_(position_at(options_, scheme.step_samples())),
      loader_(world, {.dataset = options_.dataset,
                      .feed = options_.feed,
                      .start = options_.feed.position_after(Step{begins_at_.batch})}),
      batches_(loader_, empty_batches(options_), begins_at_),
      log_(options_.folder.worker_log(options_.rank), mode_of(options_.start)),
      times_(world, {.batch_size = options_.batch_size,
                     .emulated = options_.pacer.has_value(),
                     .known_throughput = options_.stand_alone_throughput}),
      clock_(world, options_.start.training),
      estimate_({.done = options_.start.samples,
                 .step_share = options_.batch_size / options_.samples_per_step,
                 .speed_share = options_.resumed ? options_.resumed->speed_share : 0}),
      progress_(options_.start),
      saved_(options_.start.round),
      asked_to_evaluate_(moment()),
      asked_for_checkpoint_(asked_to_evaluate_) {
  replica_.on_forward_done([this] { times_.forward_done(); });
  if (options_.leads) {
    snapshots_.emplace(
        world, link,
        SnapshotWriter::Options{.evaluator = options_.evaluator,
                                .layout = layout_of(replica),
                                .folder = options_.folder,
                                .network = std::string(options_.config.network->name)});
  }
}

Trainer::~Trainer() {
  replica_.on_forward_done({});
}

void Trainer::run() {
  begun_ = machine_begun_ = clock_.now();
  keep_the_first();
  done_ = reached_the_end();
  while (!done_) {
    one_step();
  }
  replica_.on_progress(PassDetail::gradients, {});
  finish();
  keep_the_last();
  staleness_told_ = to_wire(staleness_);
  log_.flush();
}

void Trainer::finish() {
  if (link_.job_is_complete()) {
    cancelled_ += scheme_.discard_pending();
  } else {
    scheme_.flush_pending(replica_);
  }
  if (options_.gathers_at_the_end) {
    enter("waiting for the others");
    link_.barrier();
  }
  if (const auto last = scheme_.leave(replica_)) {
    act_on(*last, schedule_.rate(epoch()));
    report_if_complete();
  }
}

void Trainer::cancel_step() {
  ++cancelled_;
  done_ = true;
}

void Trainer::report_if_complete() {
  if (alone() && !reported_complete_ && progress_.samples >= options_.samples_to_train) {
    reported_complete_ = true;
    link_.report_complete();
  }
}

void Trainer::one_step() {
  times_.begin_step();
  Pass pass = compute();
  const std::uint32_t computed = pass.result.samples;
  pace(begun_, computed);
  times_.end_pass();
  if (alone() && link_.stop_reason()) {
    cancel_step();
    return;
  }
  forecast_.took(computed, clock_.now() - begun_);
  if (!admit(pass.result)) {
    ++skipped_;
  }
  enter("meeting");
  ++progress_.step;
  session_samples_ += pass.result.samples;
  ++pending_.steps;
  pending_.samples += pass.result.samples;
  estimate_.trained(pass.result.samples);
  const StepRequests requested = requests();
  const Duration took = clock_.now() - begun_;
  const Outcome outcome =
      scheme_.after_backward(replica_, {.samples = pass.result.samples,
                                        .loss_sum = pass.result.loss_sum,
                                        .paused = paused_,
                                        .requests = requested,
                                        .took = took,
                                        .last = in_step() ? reached_the_end() : is_out_of_steps(),
                                        .step = progress_.step,
                                        .position = batches_.position()});
  account(outcome);
  machine_begun_ = clock_.now();
  begun_ = next_step_begins(outcome.spent, computed);
  times_.end_step(computed);
  if (outcome.sync_round) {
    act_on(*outcome.sync_round, pass.learning_rate);
  }
  if (alone()) {  // nobody else has to agree, and what the meeting told may be the end
    done_ = requested.stop || reached_the_end();
    report_if_complete();
  }
}

Trainer::Pass Trainer::compute() {
  enter(phase_of_data);
  const Batch* batch = nullptr;
  {
    const auto scope = times_.phases().enter(Phase::data);
    batch = &batches_.next(scheme_.step_samples());
  }
  const double rate = learning_rate(static_cast<std::uint32_t>(batch->samples()));
  replica_.set_learning_rate(rate * scheme_.rate_factor());
  expect(static_cast<std::uint32_t>(batch->samples()));
  enter(phase_of_computing);
  GradientSink* const taker = taker_of(*batch);
  times_.begin_pass();
  return {.result = replica_.backward(*batch, taker), .learning_rate = rate};
}

/// That of the moment at which a step of `samples` is taken.
double Trainer::learning_rate(std::uint32_t samples) {
  if (in_step()) {
    return schedule_.rate(epoch());
  }
  if (const auto share = link_.speed_share()) {
    estimate_.expect_share(*share);
  }
  const double taken_at = estimate_.when_taken(samples);
  return schedule_.rate(taken_at / static_cast<double>(train_samples(options_)));
}

/// Who takes the gradient as it is made. Nobody may, where a batch whose gradient is not finite is to be left out:
/// that is known when all of it is there.
GradientSink* Trainer::taker_of(const Batch& batch) {
  const auto samples = static_cast<std::uint32_t>(batch.samples());
  GradientSink* const taker = options_.config.on_nan == NanPolicy::stop
                                  ? scheme_.before_backward(replica_, samples)
                                  : nullptr;
  if (taker == nullptr) {
    gate_.begin(nullptr, {}, PacedGradientSink::Hold::no);
    return nullptr;
  }
  gate_.begin(taker, replica_.view(Part::grads),
              options_.pacer ? PacedGradientSink::Hold::yes : PacedGradientSink::Hold::no);
  return &gate_;
}

/// What the device's profile and its earlier steps make likely for a step over so many samples. Where that is nothing,
/// others wait for as long as it makes progress.
void Trainer::expect(std::uint32_t samples) {
  const Duration by_profile =
      options_.pacer ? options_.pacer->mean_step_time(samples) : Duration::zero();
  expected_ = std::max(by_profile, forecast_.longest(samples));
  const bool unknown = expected_ == Duration::zero();
  if (std::exchange(reports_operators_, unknown) != unknown) {
    replica_.on_progress(unknown ? PassDetail::operators : PassDetail::gradients,
                         [&link = link_] { link.progressed(); });
  }
}

void Trainer::pace(Duration begun, std::uint32_t samples) {
  if (!options_.pacer) {
    return;
  }
  device_ends_ = options_.pacer->end_of_step(Step{progress_.step}, samples, begun);
  // The profile's time covers the local update, which comes after the meeting: leave room for it.
  const TimePoint due = clock_.when(device_ends_) - last_update_;
  const TimePoint computed = world_.now();
  if (computed - clock_.when(machine_begun_) > due - clock_.when(begun)) {
    ++overruns_;
  }
  gate_.let_through(world_, clock_.when(begun), due);
  if (computed <= due) {
    wait_until(due);
  }
}

/// On the training clock.
Duration Trainer::next_step_begins(const Spent& spent, std::uint32_t samples) const {
  return options_.pacer ? options_.pacer->begin_after({.ended = device_ends_,
                                                       .held_up = spent.communicate + spent.wait,
                                                       .samples = samples},
                                                      machine_begun_)
                        : machine_begun_;
}

/// A worker that trains by itself is woken when the job stops.
void Trainer::wait_until(TimePoint due) {
  if (alone()) {
    link_.sleep_unless_stopped(due);
  } else {
    world_.sleep_until(due);
  }
}

/// A checkpoint is agreed upon wherever workers synchronize; a test is the leading worker's own decision
/// where they do so in rounds.
StepRequests Trainer::requests() {
  StepRequests requests{.checkpoint = checkpoint_due()};
  requests.evaluate = options_.sync_mode != SyncMode::local_rounds && evaluation_due();
  const double seconds = to_seconds(moment().training);
  const bool out_of_time = options_.config.max_time && seconds >= *options_.config.max_time;
  requests.stop = reached_the_end() || out_of_time || link_.stop_reason().has_value();
  return requests;
}

/// Whether a test has become due since this was last asked, of the worker that leads.
bool Trainer::evaluation_due() {
  const PeriodicTrigger::Moment after = moment();
  const PeriodicTrigger::Moment before = std::exchange(asked_to_evaluate_, after);
  return options_.leads && evaluations_.due(before, after);
}

bool Trainer::checkpoint_due() {
  const PeriodicTrigger::Moment after = moment();
  const PeriodicTrigger::Moment before = std::exchange(asked_for_checkpoint_, after);
  return options_.leads && checkpoints_.due(before, after);
}

std::uint64_t Trainer::last_step() const {
  const double steps = std::ceil(
      options_.config.epochs * static_cast<double>(options_.feed.steps_per_epoch()) - 1e-6);
  return std::min(static_cast<std::uint64_t>(steps),
                  options_.config.max_steps.value_or(static_cast<std::uint64_t>(steps)));
}

/// Whether this worker has nothing left to do.
bool Trainer::reached_the_end() const {
  if (in_step()) {
    return progress_.step >= last_step();
  }
  return progress_.samples + pending_.samples >= options_.samples_to_train || is_out_of_steps();
}

bool Trainer::is_out_of_steps() const {
  return progress_.step >= options_.config.max_steps.value_or(progress_.step + 1);
}

/// Where training stands: by this worker's steps, where they are those of all; else by the samples of
/// all, in steps of every worker.
PeriodicTrigger::Moment Trainer::moment() const {
  const std::uint64_t pending = alone() ? pending_.samples : 0;
  const double steps =
      in_step() ? static_cast<double>(progress_.step)
                : static_cast<double>(progress_.samples + pending) / options_.samples_per_step;
  return {.step = steps, .training = clock_.now() - paused_};
}

/// False for a batch whose gradient is not finite, where such batches are to be left out: it then
/// counts as one without samples. Errors: NotFinite, where they are to end the job.
bool Trainer::admit(PassResult& pass) {
  if (has_finite_gradient()) {
    skipped_in_a_row_ = 0;
    return true;
  }
  if (++skipped_in_a_row_ >= hopeless) {
    throw NotFinite(fmt::format(
        "worker {}, step {}: the gradients of {} batches in a row are not finite, so the model is "
        "lost; begin again with a lower learning rate",
        options_.rank.value, progress_.step + 1, hopeless));
  }
  if (options_.config.on_nan == NanPolicy::stop) {
    throw NotFinite(fmt::format(
        "worker {}, step {}: the gradient of a batch with loss {:.4g} is not finite; lower the "
        "learning rate, or leave such batches out by --on-nan skip",
        options_.rank.value, progress_.step + 1, mean(pass.loss_sum, pass.samples)));
  }
  const std::span<float> grads = replica_.view(Part::grads);
  std::fill(grads.begin(), grads.end(), 0.0F);
  replica_.store(Part::grads);
  pass = {};
  return false;
}

/// What was taken while it was made may be a mean by now.
bool Trainer::has_finite_gradient() {
  return gate_.in_use() ? gate_.finite() : all_finite(replica_.view(Part::grads));
}

void Trainer::account(const Outcome& outcome) {
  const Spent& spent = outcome.spent;
  for (const PushStatus& status : outcome.push_statuses) {
    dropped_ += status.dropped ? 1 : 0;
    staleness_.add(status.staleness);
  }
  last_update_ = spent.update;
  times_.phases().add(Phase::update, spent.update);
  times_.phases().add(Phase::communicate, spent.communicate);
  times_.phases().add(Phase::wait, spent.wait);
}

/// Once for all workers, and again when it is another, as after a loss.
void Trainer::tell_aggregate() {
  const std::string aggregate = scheme_.aggregate();
  if (options_.rank == Rank{0} && aggregate != std::exchange(aggregate_told_, aggregate)) {
    log::info("adding up by {}", aggregate);
  }
}

void Trainer::act_on(const SyncRound& meeting, double learning_rate) {
  clock_.take_off(meeting.paused);
  begun_ -= meeting.paused;
  machine_begun_ -= meeting.paused;
  paused_ = Duration::zero();
  progress_.round = meeting.round.value;
  progress_.samples += meeting.samples;
  const OwnContribution own = meeting.own.value_or(pending_);
  pending_ = {.steps = 0, .samples = meeting.own_since};
  estimate_.synchronized(meeting.samples, meeting.own_since);
  progress_.training = clock_.now();
  loss_ = mean(meeting.loss_sum, meeting.samples);
  done_ = meeting.agreed.stop;
  log_round(meeting, own, learning_rate);
  tell_aggregate();
  const bool evaluate =
      options_.sync_mode == SyncMode::local_rounds ? evaluation_due() : meeting.agreed.evaluate;
  if (!evaluate && !meeting.agreed.checkpoint) {
    return;
  }
  const TimePoint start = world_.now();
  if (meeting.agreed.checkpoint && !alone()) {
    checkpoint_with_all(evaluate);
  } else {
    keep(evaluate, meeting.agreed.checkpoint);
  }
  pause_since(start);
}

/// What comes off the training clock of all at the next meeting; where workers meet in rounds nothing does.
void Trainer::pause_since(TimePoint start) {
  if (options_.sync_mode != SyncMode::local_rounds) {
    paused_ = world_.now() - start;
    begun_ += paused_;
    machine_begun_ += paused_;
  }
}

double Trainer::epoch() const {
  return in_step() ? options_.feed.epochs_before(position())
                   : static_cast<double>(progress_.samples) /
                         static_cast<double>(train_samples(options_));
}

}  // namespace syncopate
