#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/errors.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

ProgressPolicy::Job job_of(const Trainer::Options& options) {
  return {.feed = options.feed,
          .samples_per_step = options.samples_per_step,
          .batch_size = options.batch_size,
          .train_samples = options.dataset.train.samples(),
          .samples_to_train = options.samples_to_train,
          .epochs = options.config.epochs,
          .max_steps = options.config.max_steps,
          .own_loop = options.loop != nullptr};
}

DataPosition first_position(const Trainer::Options& options, const ProgressPolicy& policy,
                            std::uint32_t step_samples) {
  return options.resumed
             ? options.resumed->position
             : policy.first_position({.step = options.start.step, .samples = options.start.samples},
                                     step_samples);
}

MicroBatcher::Empty empty_batches(const ProgressPolicy& policy) {
  return policy.rules().skips_empty_batches ? MicroBatcher::Empty::skipped
                                            : MicroBatcher::Empty::kept;
}

/// The part of a worker never changes its size, so one mini-batch shows if the part is empty.
/// Errors: ConfigError, for a worker that would skip empty mini-batches for ever.
void expect_samples(Trainer::Options& options, const ProgressPolicy& policy) {
  if (policy.rules().skips_empty_batches && options.feed.batch({}).empty()) {
    throw ConfigError(fmt::format(
        "worker {} has no training sample: its part of the {} samples is empty; use fewer workers",
        options.rank.value, options.dataset.train.samples()));
  }
}

/// The time between two steps without samples, of a worker whose loop has left: the others, which
/// compute, are not held up, and a core stays free for them.
constexpr Duration lingering = std::chrono::milliseconds(20);

double mean(double sum, std::uint64_t count) {
  return sum / static_cast<double>(count);
}

/// The mean loss. Empty where a program with a loop of its own does not say it.
std::optional<double> loss_of(const TrainConfig& config, const PassResult& pass) {
  const double loss = mean(pass.loss_sum, pass.samples);
  return std::isnan(loss) && config.epochs >= open_end ? std::nullopt : std::optional(loss);
}

}  // namespace

Trainer::Trainer(World& world, MemberLink& link, Replica& replica, Scheme& scheme, Options options)
    : world_(world),
      link_(link),
      replica_(replica),
      scheme_(scheme),
      options_(std::move(options)),
      schedule_(schedule_of(options_.config)),
      policy_(make_progress_policy(options_.sync_mode, job_of(options_))),
      evaluations_(options_.config.eval_every, policy_->steps_per_epoch()),
      checkpoints_(options_.config.checkpoint_every, policy_->steps_per_epoch()),
      first_position_(first_position(options_, *policy_, scheme.step_samples())),
      trace_(world, {.detail = options_.config.trace,
                     .folder = options_.folder,
                     .worker = *link.view().find(Role::worker, options_.rank),
                     .round = options_.start.round,
                     .updates_first = options_.own_optimizers}),
      loader_(world, {.dataset = options_.dataset,
                      .feed = options_.feed,
                      .start = options_.feed.position_after(Step{first_position_.batch}),
                      .augmentation = options_.config.augment,
                      .seed = options_.config.seed,
                      .prepared = [this](TimePoint begun,
                                         TimePoint ended) { trace_.loaded(begun, ended); }}),
      batches_(loader_, empty_batches(*policy_), first_position_),
      report_(world, link,
              {.rank = options_.rank,
               .folder = options_.folder,
               .start = options_.start,
               .round_logged = options_.loop != nullptr ? options_.loop->round_listener()
                                                        : StepHandover::RoundListener(),
               .program = options_.loop != nullptr ? options_.loop->waits() : nullptr}),
      times_(world, {.batch_size = options_.batch_size,
                     .emulated = options_.pacer.has_value(),
                     .known_throughput = options_.stand_alone_throughput}),
      clock_(world, options_.start.training),
      device_(clock_, options_.pacer),
      estimate_({.done = options_.start.samples,
                 .step_share = options_.batch_size / options_.samples_per_step,
                 .speed_share = options_.resumed ? options_.resumed->speed_share : 0}),
      progress_(options_.start),
      saved_(options_.start.round),
      finite_(options_.rank, options_.config.on_nan) {
  evaluations_.restart(moment());
  checkpoints_.restart(moment());
  replica_.on_forward_done([this] { times_.forward_done(); });
  if (options_.leads) {
    snapshots_.emplace(
        world, link,
        SnapshotWriter::Options{.layout = layout_of(replica),
                                .folder = options_.folder,
                                .network = std::string(options_.config.network->name)});
  }
  report_.progress(progress_, epoch());
  report_.loss(std::numeric_limits<double>::quiet_NaN());  // known after a round
}

Trainer::~Trainer() {
  replica_.on_forward_done({});
}

void Trainer::run() {
  expect_samples(options_, *policy_);
  device_.restart(clock_.now());
  save_first();
  done_ = is_complete();
  while (!done_) {
    one_step();
  }
  replica_.on_progress(PassDetail::gradients, {});
  finish();
  const TimePoint start = world_.now();
  save_last();
  held_since(start);
  trace_.flush();
  report_.flush();
}

void Trainer::finish() {
  const auto act_on_last = [&](const std::optional<SyncRound>& last) {
    if (last) {
      stop_clock();
      act_on(*last, schedule_.rate(epoch()));
      report_if_complete();
    }
  };
  if (link_.job_is_complete()) {
    report_.count(Metric::cancelled_steps, scheme_.discard_pending());
  } else {
    act_on_last(scheme_.flush_pending(replica_));
  }
  if (options_.gathers_at_the_end) {
    await_others();
  }
  act_on_last(scheme_.leave(replica_));
  if (options_.takes_model_at_the_end) {
    await_others();
    scheme_.take_model(replica_);
  }
}

void Trainer::await_others() {
  report_.enter("waiting for the others");
  link_.barrier();
}

void Trainer::cancel_step() {
  report_.count(Metric::cancelled_steps);
  done_ = true;
}

void Trainer::report_if_complete() {
  const bool complete = progress_.samples >= options_.samples_to_train;
  if (policy_->rules().stops_at_once && complete && !reported_complete_) {
    reported_complete_ = true;
    link_.report_complete(MemberLink::Limit::samples);
  }
}

/// A worker that is suspended, or waits for one that is, may see it much later.
void Trainer::report_if_out_of_time() {
  if (is_out_of_time() && !std::exchange(reported_out_of_time_, true)) {
    link_.report_complete(MemberLink::Limit::time);
  }
}

/// Training has ended for all workers: a wait for the last of them is none of its time.
void Trainer::stop_clock() {
  const auto stopped = link_.stopped_at();
  if (stopped && policy_->rules().stops_at_once) {
    clock_.stop(std::max(*stopped, clock_.when(progress_.training)));
  }
}

void Trainer::one_step() {
  const bool stops_at_once = policy_->rules().stops_at_once;
  times_.begin_step();
  Pass pass = compute();
  const std::uint32_t computed = pass.result.samples;
  wait_for_device(computed);
  const PassTimes times = times_.end_pass();
  trace_.passed(times, computed);
  if (stops_at_once && link_.stop_reason()) {
    cancel_step();
    return;
  }
  if (loop_has_left()) {
    if (stops_at_once) {
      done_ = true;
      return;
    }
    world_.sleep_for(lingering);
  }
  forecast_.took(computed, clock_.now() - device_.begun());
  if (!admit(pass.result)) {
    report_.count(Metric::skipped_batches);
  }
  const StepRequests requested = requests_after(pass.result.samples);
  const Outcome outcome = synchronize(pass, requested);
  const Duration held = outcome.sync_round ? held_by_others(*outcome.sync_round) : Duration::zero();
  count_time(outcome.spent, held, computed);
  trace_.synchronized(times.begun + times.whole, outcome, held);
  report_.outcome(outcome, scheme_, times_, {.epoch = epoch(), .training = clock_.now()});
  if (outcome.sync_round) {
    act_on(*outcome.sync_round, pass.learning_rate);
  }
  if (stops_at_once) {  // also where the round would let it go on
    done_ = requested.stop || is_complete();
    report_if_complete();
    report_if_out_of_time();
  }
}

Trainer::Pass Trainer::compute() {
  report_.enter(WorkerReport::data);
  const TimePoint begun = world_.now();
  const Batch* batch = nullptr;
  {
    const auto scope = times_.phases().enter(Phase::data);
    batch = &batches_.next(scheme_.step_samples());
  }
  trace_.waited_for_batch(begun);
  const auto samples = static_cast<std::uint32_t>(batch->samples());
  const double rate = learning_rate(samples);
  replica_.set_learning_rate(rate * rate_factor(samples));
  forecast_step(samples);
  report_.enter(WorkerReport::computing);
  times_.begin_pass();
  GradientSink* const sink = sink_for(*batch);
  const PassResult result = replica_.backward(*batch, sink);
  if (options_.loop == nullptr) {  // which does not say how many it has classified right
    report_.classified(result);
  }
  return {.result = result, .learning_rate = rate};
}

/// Counts the step, and returns what this worker requests after it.
StepRequests Trainer::requests_after(std::uint32_t samples) {
  report_.enter(phase_synchronization);
  ++progress_.step;
  ++pending_.steps;
  pending_.samples += samples;
  estimate_.trained(samples);
  report_.step(progress_, samples);
  return requests();
}

Outcome Trainer::synchronize(const Pass& pass, const StepRequests& requests) {
  return scheme_.after_backward(replica_, {.samples = pass.result.samples,
                                           .loss_sum = pass.result.loss_sum,
                                           .paused = paused_,
                                           .requests = requests,
                                           .took = clock_.now() - device_.begun(),
                                           .last = policy_->is_last_step(standing()),
                                           .step = progress_.step,
                                           .position = batches_.position()});
}

/// The rate at the moment at which a step of `samples` is taken.
double Trainer::learning_rate(std::uint32_t samples) {
  if (const auto share = link_.speed_share()) {
    estimate_.expect_share(*share);
  }
  return schedule_.rate(policy_->epoch_of_step(standing(), estimate_.when_taken(samples)));
}

/// A program's own loop takes the batches that it has, whatever the scheme wants: its steps are
/// whole ones.
double Trainer::rate_factor(std::uint32_t samples) {
  return scheme_.rate_factor(options_.loop != nullptr ? options_.batch_size : samples);
}

/// The receiver of the gradient while the pass computes it. Null if gradients that are not finite
/// are to be skipped: this is known only once the whole gradient is there.
GradientSink* Trainer::sink_for(const Batch& batch) {
  const bool may_have_one =
      options_.config.on_nan == NanPolicy::stop && replica_.reports_gradients();
  GradientSink* const sink =
      may_have_one ? scheme_.before_backward(replica_, replica_.samples_of_pass(batch)) : nullptr;
  if (sink == nullptr) {
    gate_.begin(nullptr, {}, PacedGradientSink::Hold::no);
    return nullptr;
  }
  gate_.begin(sink, replica_.view(ReplicaVector::grads),
              device_.is_emulated() ? PacedGradientSink::Hold::yes : PacedGradientSink::Hold::no);
  return &gate_;
}

/// Reports the longest likely time of a step over `samples`, by the device's profile and earlier
/// steps. If neither is known, the other workers wait as long as the step makes progress.
void Trainer::forecast_step(std::uint32_t samples) {
  // A program may do anything between two steps of its loop, and shows progress meanwhile.
  const Duration longest = options_.loop != nullptr ? Duration::zero()
                                                    : std::max(device_.mean_step_time(samples),
                                                               forecast_.longest(samples));
  report_.expect(longest);
  const bool unknown = longest == Duration::zero();
  if (std::exchange(reports_operators_, unknown) != unknown) {
    replica_.on_progress(unknown ? PassDetail::operators : PassDetail::gradients,
                         [&link = link_] { link.progressed(); });
  }
}

/// Waits until an emulated device has done its pass.
void Trainer::wait_for_device(std::uint32_t samples) {
  if (!device_.is_emulated()) {
    return;
  }
  const TimePoint computed = world_.now();
  const DeviceClock::Pass pass = device_.end_pass(Step{progress_.step}, samples, computed);
  if (pass.overrun) {
    report_.count(Metric::pace_overruns);
  }
  gate_.let_through(world_, pass.begun, pass.due);
  if (computed <= pass.due) {
    wait_until(pass.due);
  }
}

void Trainer::wait_until(TimePoint due) {
  if (policy_->rules().stops_at_once) {
    link_.sleep_unless_stopped(due);
  } else {
    world_.sleep_until(due);
  }
}

StepRequests Trainer::requests() {
  StepRequests requests{.checkpoint = checkpoint_due()};
  requests.evaluate = policy_->rules().agrees_on_evaluations && evaluation_due();
  requests.stop = is_complete() || is_out_of_time() || link_.stop_reason().has_value();
  requests.left = loop_has_left();
  return requests;
}

bool Trainer::is_out_of_time() const {
  const std::optional<double>& limit = options_.config.max_time;
  return limit && to_seconds(moment().training) >= *limit;
}

Standing Trainer::standing() const {
  return {
      .step = progress_.step, .samples = progress_.samples, .pending_samples = pending_.samples};
}

PeriodicTrigger::Moment Trainer::moment() const {
  return {.step = policy_->steps(standing()), .training = clock_.now() - paused_};
}

/// False if the gradient is not finite and such batches are to be skipped: the batch then counts as
/// one without samples. Errors: NotFinite, if such a batch is to end the job, or too many follow
/// each other.
bool Trainer::admit(PassResult& pass) {
  if (finite_.admit(has_finite_gradient(), progress_.step + 1, loss_of(options_.config, pass))) {
    return true;
  }
  const std::span<float> grads = replica_.view(ReplicaVector::grads);
  std::fill(grads.begin(), grads.end(), 0.0F);
  replica_.store(ReplicaVector::grads);
  pass = {};
  return false;
}

/// A gradient that was taken while it was computed may have become a mean since: the sink has
/// checked it before.
bool Trainer::has_finite_gradient() {
  return gate_.in_use() ? gate_.finite() : all_finite(replica_.view(ReplicaVector::grads));
}

/// Counts the time of a step of `samples` samples that the scheme has ended. An emulated device
/// stands still in the pause of others, `held`, which comes off its clock after the step.
void Trainer::count_time(const Spent& spent, Duration held, std::uint32_t samples) {
  times_.phases().add(Phase::update, spent.update);
  times_.phases().add(Phase::communicate, spent.communicate);
  times_.phases().add(Phase::wait, spent.wait);
  device_.end_step({.held_up = spent.communicate + spent.wait + held, .update = spent.update},
                   samples);
  times_.end_step(samples);
}

void Trainer::act_on(const SyncRound& sync_round, double learning_rate) {
  const OwnContribution own = sync_round.own.value_or(pending_);
  count_round(sync_round);
  done_ = sync_round.agreed.stop || sync_round.agreed.left;
  report_.progress(progress_, epoch());
  report_.aggregate(scheme_.aggregate());
  report_.log({.samples = sync_round.samples, .own = own, .learning_rate = learning_rate});
  trace_.bytes_sent(report_.bytes_sent());
  const ProgressPolicy::Rules& rules = policy_->rules();
  const bool evaluate = rules.agrees_on_evaluations ? sync_round.agreed.evaluate : evaluation_due();
  if (!evaluate && !sync_round.agreed.checkpoint) {
    return;
  }
  const TimePoint start = world_.now();
  if (sync_round.agreed.checkpoint && rules.saves_all_workers) {
    save_all_workers(evaluate);
  } else {
    save(evaluate, sync_round.agreed.checkpoint);
  }
  held_since(start);
  pause_since(start);
}

void Trainer::count_round(const SyncRound& sync_round) {
  report_.held(held_by_others(sync_round));
  clock_.take_off(sync_round.paused);
  device_.shift(-sync_round.paused);
  paused_ = Duration::zero();
  progress_.round = sync_round.round.value;
  progress_.samples += sync_round.samples;
  progress_.training = clock_.now();
  pending_ = {.steps = 0, .samples = sync_round.own_since};
  estimate_.synchronized(sync_round.samples, sync_round.own_since);
  if (sync_round.samples > 0) {
    report_.loss(mean(sync_round.loss_sum, sync_round.samples));
  }
}

/// This worker has handed over a model, or written a checkpoint, since `start`.
void Trainer::held_since(TimePoint start) {
  report_.held(world_.now() - start);
  trace_.saved(start);
}

/// The part of a round's pause that is not this worker's own.
Duration Trainer::held_by_others(const SyncRound& sync_round) const {
  return std::max(Duration::zero(), sync_round.paused - paused_);
}

/// The time since `start` comes off the training clock of all workers at their next
/// synchronization.
void Trainer::pause_since(TimePoint start) {
  if (policy_->rules().pauses_clock) {
    paused_ = world_.now() - start;
    device_.shift(paused_);
  }
}

}  // namespace syncopate
