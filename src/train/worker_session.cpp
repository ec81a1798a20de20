#include "train/worker_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "kernels/reduce.hpp"
#include "scheme/scheme_spec.hpp"
#include "train/initial_state.hpp"

namespace syncopate {
namespace {

void warn_of_small_batches(const JobPlan& plan) {
  const std::uint32_t least = plan.least_step_samples();
  if (least < batch_norm_samples) {
    log::warn(
        "a step may take as few as {} samples, which is little for the statistics of BatchNorm: "
        "below {} they are noisy; use a larger --batch-size{}",
        least, batch_norm_samples,
        plan.cuts_batches() ? scheme_named(plan.config().scheme).way_to_larger_steps : "");
  }
}

/// A log that cannot be cut, such as on a full disk, has the rounds after the checkpoint twice.
void cut_log(const std::filesystem::path& path, std::uint64_t round) {
  try {
    keep_rounds_up_to(path, round);
  } catch (const DataError& error) {
    log::warn("{}; training goes on, and this log repeats rounds", error.what());
  }
}

double mean(double sum, std::uint64_t count) {
  return sum / static_cast<double>(count);
}

/// The mean loss. Empty where a program with a loop of its own does not say it.
std::optional<double> loss_of(const TrainConfig& config, const PassResult& pass) {
  const double loss = mean(pass.loss_sum, pass.samples);
  return std::isnan(loss) && config.epochs >= open_end ? std::nullopt : std::optional(loss);
}

}  // namespace

WorkerSession::WorkerSession(World& world, MemberLink& link, Replica& replica,
                             const WorkerOptions& options)
    : world_(world),
      link_(link),
      replica_(replica),
      options_(options),
      pacer_(link),
      setup_((link.join(), world), link, pacer_, replica, options_),
      scheme_(begin_together()),
      feed_(options_.plan.feed(options_.dataset.train, options_.rank)),
      schedule_(schedule_of(config())),
      batch_size_(options_.plan.batch_sizes()[options_.rank.value]),
      samples_to_train_(options_.plan.samples_to_train(options_.dataset.train.samples())),
      policy_(make_progress_policy(options_.plan.sync_mode(), counted())),
      evaluations_(config().eval_every, policy_->steps_per_epoch()),
      checkpoints_(config().checkpoint_every, policy_->steps_per_epoch()),
      first_position_(setup_.loop()
                          ? setup_.loop()->position
                          : policy_->first_position({.step = setup_.progress().step,
                                                     .samples = setup_.progress().samples},
                                                    scheme_->step_samples())),
      trace_(world, {.detail = config().trace,
                     .folder = options_.folder,
                     .worker = *link.view().find(Role::worker, options_.rank),
                     .round = setup_.progress().round,
                     .updates_first = has_own_optimizer()}),
      report_(world, link,
              {.rank = options_.rank,
               .folder = options_.folder,
               .start = setup_.progress(),
               .program = options_.program}),
      times_(world, {.batch_size = batch_size_,
                     .emulated = options_.plan.pacer(options_.rank).has_value(),
                     .known_throughput = setup_.device().samples_per_second}),
      clock_(world, setup_.progress().training),
      device_(clock_, options_.plan.pacer(options_.rank)),
      estimate_({.done = setup_.progress().samples,
                 .step_share = batch_size_ / options_.plan.samples_per_step(),
                 .speed_share = setup_.loop() ? setup_.loop()->speed_share : 0}),
      finite_(replica_, options_.rank, config().on_nan),
      progress_(setup_.progress()),
      position_(first_position_),
      saved_(progress_.round) {
  evaluations_.restart(moment());
  checkpoints_.restart(moment());
  replica_.on_forward_done([this] { times_.forward_done(); });
  if (leads()) {
    snapshots_.emplace(world, link,
                       SnapshotWriter::Options{.layout = layout_of(replica),
                                               .folder = options_.folder,
                                               .network = std::string(config().network->name)});
  }
  report_.progress(progress_, epoch());
  report_.loss(std::numeric_limits<double>::quiet_NaN());  // known after a round
}

WorkerSession::~WorkerSession() {
  replica_.on_forward_done({});
}

/// All workers continue at one moment, at which the training clock begins.
std::unique_ptr<Scheme> WorkerSession::begin_together() {
  cut_log(options_.folder.worker_log(options_.rank), setup_.progress().round);
  if (options_.rank == Rank{0} && !replica_.layout(ReplicaVector::buffers).empty()) {
    warn_of_small_batches(options_.plan);
  }
  std::unique_ptr<Scheme> scheme = setup_.make_scheme();
  if (auto* const saves = offered<SavesState>(*scheme)) {
    saves->load_worker_states(setup_.states());
  }
  restart_rounds(*scheme, link_.restart(setup_.pacer(), setup_.device()));
  return scheme;
}

ProgressPolicy::Job WorkerSession::counted() const {
  return {.feed = feed_,
          .samples_per_step = options_.plan.samples_per_step(),
          .batch_size = batch_size_,
          .train_samples = options_.dataset.train.samples(),
          .samples_to_train = samples_to_train_,
          .epochs = config().epochs,
          .max_steps = config().max_steps,
          .own_loop = options_.program.has_value()};
}

bool WorkerSession::has_own_optimizer() const {
  return traits_of(config()).local_steps;
}

/// True for the worker that has the model tested and saved for all.
bool WorkerSession::leads() const {
  return options_.rank == Rank{0} && !options_.plan.server_keeps_model();
}

void WorkerSession::start() {
  device_.restart(clock_.now());
  save_first();
  finite_.keep_buffers();
  done_ = is_complete();
}

std::uint32_t WorkerSession::begin() {
  times_.begin_step();
  report_.enter(WorkerReport::data);
  data_begun_ = world_.now();
  return scheme_->step_samples();
}

std::span<const std::uint32_t> WorkerSession::parts() const {
  const auto* const divides = offered<DividesSteps>(*scheme_);
  return divides != nullptr ? divides->parts() : std::span<const std::uint32_t>();
}

void WorkerSession::compute(std::uint32_t samples, Duration longest) {
  times_.phases().add(Phase::data, world_.now() - data_begun_);
  trace_.waited_for_batch(data_begun_);
  use_rate_of(samples);
  report_.expect(longest);
  report_.enter(WorkerReport::computing);
  times_.begin_pass();
  gate_.begin(nullptr, {}, PacedGradientSink::Hold::no);
}

GradientSink* WorkerSession::sink(std::uint32_t samples) {
  life_.pass_begins();
  const bool may_have_one = config().on_nan == NanPolicy::stop && replica_.reports_gradients();
  GradientSink* const sink = may_have_one ? scheme_->before_backward(replica_, samples) : nullptr;
  if (sink == nullptr) {
    return nullptr;
  }
  gate_.begin(sink, replica_.view(ReplicaVector::grads),
              device_.is_emulated() ? PacedGradientSink::Hold::yes : PacedGradientSink::Hold::no);
  return &gate_;
}

std::optional<Duration> WorkerSession::end(PassResult pass, const DataPosition& position) {
  const bool stops_at_once = policy_->rules().stops_at_once;
  const std::uint32_t computed = pass.samples;
  position_ = position;
  wait_for_device(computed);
  const PassTimes times = times_.end_pass();
  trace_.passed(times, computed);
  if (stops_at_once && link_.stop_reason()) {
    report_.count(Metric::cancelled_steps);
    done_ = true;
    return std::nullopt;
  }
  const Duration took = since_begun();
  if (computed > 0 && computed != rate_samples_) {
    use_rate_of(computed);
  }
  if (!admit(pass)) {
    report_.count(Metric::skipped_batches);
  }
  const StepRequests requested = requests_after(pass.samples);
  const Outcome outcome = synchronize(pass, requested);
  const Duration held = outcome.sync_round ? held_by_others(*outcome.sync_round) : Duration::zero();
  count_time(outcome.spent, held, computed);
  trace_.synchronized(times.begun + times.whole, outcome, held);
  report_.outcome(outcome, *scheme_, times_, {.epoch = epoch(), .training = clock_.now()});
  if (outcome.sync_round) {
    act_on(*outcome.sync_round);
  }
  if (stops_at_once) {  // also where the round would let it go on
    done_ = requested.stop || is_complete();
    report_if_complete();
    report_if_out_of_time();
  }
  return took;
}

void WorkerSession::take_replica() {
  life_.expect_between();
  scheme_->take_replica(
      replica_, {.first = options_.rank == Rank{0}, .barrier = [this] { link_.barrier(); }});
  finite_.keep_buffers();
}

void WorkerSession::finish() {
  take_steps_without_samples();
  contribute_rest();
  const TimePoint start = world_.now();
  save_last();
  held_since(start);
  trace_.flush();
  report_.flush();
  if (options_.program) {
    expect_same_model(setup_.workers(), replica_);
  }
  wire::Leave leave;
  *leave.mutable_last() = report_.last();
  link_.leave(leave);
}

void WorkerSession::contribute_rest() {
  const auto act_on_last = [&](const std::optional<SyncRound>& last) {
    if (last) {
      stop_clock();
      learning_rate_ = schedule_.rate(epoch());
      act_on(*last);
      report_if_complete();
    }
  };
  life_.leaves();
  auto* const pending = offered<HasPending>(*scheme_);
  if (pending && link_.job_is_complete()) {
    report_.count(Metric::cancelled_steps, pending->discard_pending());
  } else if (pending) {
    act_on_last(pending->flush_pending(replica_));
  }
  if (uses_shared_model(config())) {
    await_others();  // the model is complete when every worker has ended
  }
  act_on_last(scheme_->leave(replica_));
  if (options_.program && options_.plan.server_keeps_model()) {
    await_others();
    if (auto* const shares = offered<SharesModel>(*scheme_)) {
      shares->take_model(replica_);  // the program goes on with it
    }
  }
}

void WorkerSession::await_others() {
  report_.enter("waiting for the others");
  link_.barrier();
}

void WorkerSession::report_if_complete() {
  const bool complete = progress_.samples >= samples_to_train_;
  if (policy_->rules().stops_at_once && complete && !reported_complete_) {
    reported_complete_ = true;
    link_.report_complete(MemberLink::Limit::samples);
  }
}

/// A worker that is suspended, or waits for one that is, may see it much later.
void WorkerSession::report_if_out_of_time() {
  if (is_out_of_time() && !std::exchange(reported_out_of_time_, true)) {
    link_.report_complete(MemberLink::Limit::time);
  }
}

/// Training has ended for all workers: a wait for the last of them is none of its time.
void WorkerSession::stop_clock() {
  const auto stopped = link_.stopped_at();
  if (stopped && policy_->rules().stops_at_once) {
    clock_.stop(std::max(*stopped, clock_.when(progress_.training)));
  }
}

/// Counts the step, and returns what this worker requests after it.
StepRequests WorkerSession::requests_after(std::uint32_t samples) {
  report_.enter(phase_synchronization);
  ++progress_.step;
  ++pending_.steps;
  pending_.samples += samples;
  estimate_.trained(samples);
  report_.step(progress_, samples);
  return requests();
}

/// The time of the step so far. An emulated device may begin a step a moment from now, because its
/// step before ends then; one without samples ends at once.
Duration WorkerSession::since_begun() const {
  return std::max(Duration::zero(), clock_.now() - device_.begun());
}

Outcome WorkerSession::synchronize(const PassResult& pass, const StepRequests& requests) {
  life_.pass_ends();
  const Outcome outcome =
      scheme_->after_backward(replica_, {.samples = pass.samples,
                                         .loss_sum = pass.loss_sum,
                                         .paused = paused_,
                                         .requests = requests,
                                         .took = since_begun(),
                                         .last = policy_->is_last_step(standing()),
                                         .step = progress_.step,
                                         .position = position_});
  finite_.keep_buffers();
  return outcome;
}

/// The rate at the moment at which a step of `samples` is taken.
double WorkerSession::learning_rate(std::uint32_t samples) {
  if (const auto share = link_.speed_share()) {
    estimate_.expect_share(*share);
  }
  return schedule_.rate(policy_->epoch_of_step(standing(), estimate_.when_taken(samples)));
}

void WorkerSession::use_rate_of(std::uint32_t samples) {
  rate_samples_ = samples;
  learning_rate_ = learning_rate(samples);
  replica_.set_learning_rate(learning_rate_ * scheme_->rate_factor(samples));
}

/// Waits until an emulated device has done its pass.
void WorkerSession::wait_for_device(std::uint32_t samples) {
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

void WorkerSession::wait_until(TimePoint due) {
  if (policy_->rules().stops_at_once) {
    link_.sleep_unless_stopped(due);
  } else {
    world_.sleep_until(due);
  }
}

StepRequests WorkerSession::requests() {
  StepRequests requests{.checkpoint = checkpoint_due()};
  requests.evaluate = policy_->rules().agrees_on_evaluations && evaluation_due();
  requests.stop = is_complete() || is_out_of_time() || link_.stop_reason().has_value();
  requests.place = place_;
  return requests;
}

bool WorkerSession::is_out_of_time() const {
  const std::optional<double>& limit = config().max_time;
  return limit && to_seconds(moment().training) >= *limit;
}

Standing WorkerSession::standing() const {
  return {
      .step = progress_.step, .samples = progress_.samples, .pending_samples = pending_.samples};
}

PeriodicTrigger::Moment WorkerSession::moment() const {
  return {.step = policy_->steps(standing()), .training = clock_.now() - paused_};
}

/// False if the gradient is not finite and such batches are to be skipped: the batch then counts as
/// one without samples. Errors: NotFinite, if such a batch is to end the job, or too many follow
/// each other.
bool WorkerSession::admit(PassResult& pass) {
  if (finite_.admit(has_finite_gradient(), progress_.step + 1, loss_of(config(), pass))) {
    return true;
  }
  replica_.discard_gradient();
  pass = {};
  return false;
}

/// A gradient that was taken while it was computed may have become a mean since: the sink has
/// checked it before.
bool WorkerSession::has_finite_gradient() {
  return gate_.in_use() ? gate_.finite() : all_finite(replica_.view(ReplicaVector::grads));
}

/// Counts the time of a step of `samples` samples that the scheme has ended. An emulated device
/// stands still in the pause of others, `held`, which comes off its clock after the step.
void WorkerSession::count_time(const Spent& spent, Duration held, std::uint32_t samples) {
  times_.phases().add(Phase::update, spent.update);
  times_.phases().add(Phase::communicate, spent.communicate);
  times_.phases().add(Phase::wait, spent.wait);
  device_.end_step({.held_up = spent.communicate + spent.wait + held, .update = spent.update},
                   samples);
  times_.end_step(samples);
}

void WorkerSession::act_on(const SyncRound& sync_round) {
  const OwnContribution own = sync_round.own.value_or(pending_);
  count_round(sync_round);
  done_ = sync_round.agreed.stop;
  place_is_agreed_ |= place_ && sync_round.agreed.place == place_;
  elsewhere_ = sync_round.elsewhere;
  replica_.trained_on(progress_.samples);
  report_.progress(progress_, epoch());
  if (const auto* const traffic = offered<ReportsTraffic>(*scheme_)) {
    report_.aggregate(traffic->aggregate());
  }
  report_.log({.samples = sync_round.samples, .own = own, .learning_rate = learning_rate_});
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

void WorkerSession::count_round(const SyncRound& sync_round) {
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
void WorkerSession::held_since(TimePoint start) {
  report_.held(world_.now() - start);
  trace_.saved(start);
}

/// The part of a round's pause that is not this worker's own.
Duration WorkerSession::held_by_others(const SyncRound& sync_round) const {
  return std::max(Duration::zero(), sync_round.paused - paused_);
}

/// The time since `start` comes off the training clock of all workers at their next
/// synchronization.
void WorkerSession::pause_since(TimePoint start) {
  if (policy_->rules().pauses_clock) {
    paused_ = world_.now() - start;
    device_.shift(paused_);
  }
}

}  // namespace syncopate
