#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate {
namespace {

constexpr std::size_t checkpoints_kept = 3;

JsonLines::Mode mode_of(const Progress& start) {
  return start == Progress{} ? JsonLines::Mode::create : JsonLines::Mode::append;
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
      schedule_(options_.config),
      evaluations_(options_.config.eval_every, options_.feed.steps_per_epoch()),
      checkpoints_(options_.config.checkpoint_every, options_.feed.steps_per_epoch()),
      loader_(world, {.dataset = options_.dataset,
                      .feed = options_.feed,
                      .start = options_.feed.position_after(Step{options_.start.step})}),
      log_(options_.folder.worker_log(options_.rank), mode_of(options_.start)),
      phases_(world),
      clock_(world, options_.start.training),
      progress_(options_.start),
      asked_(options_.start.training) {}

void Trainer::run() {
  done_ = progress_.step >= last_step();
  if (done_) {
    snapshot_and_checkpoint(options_.config.eval_every.unit != Every::Unit::never, false);
  }
  while (!done_) {
    one_step();
  }
  if (options_.snapshots) {
    options_.snapshots->finish();
  }
  log_.flush();
}

void Trainer::one_step() {
  const Duration begun = clock_.now();
  const Pass pass = compute();
  pace(begun, pass.result.samples);
  enter("meeting");
  const Outcome outcome = scheme_.after_backward(replica_, {.samples = pass.result.samples,
                                                            .loss_sum = pass.result.loss_sum,
                                                            .paused = paused_,
                                                            .wishes = wishes()});
  ++progress_.step;
  session_samples_ += pass.result.samples;
  account(outcome.spent);
  if (outcome.meeting) {
    act_on(*outcome.meeting, pass.learning_rate);
  }
}

Trainer::Pass Trainer::compute() {
  enter("data");
  const Batch* batch = nullptr;
  {
    const auto scope = phases_.enter(Phase::data);
    batch = &loader_.next();
  }
  const double rate = schedule_.rate(epoch());
  replica_.set_learning_rate(rate);
  enter("backward");
  const auto scope = phases_.enter(Phase::compute);
  return {.result = replica_.backward(*batch), .learning_rate = rate};
}

void Trainer::pace(Duration begun, std::uint32_t samples) {
  if (!options_.pacer) {
    return;
  }
  const auto scope = phases_.enter(Phase::compute);
  const Duration end = options_.pacer->end_of_step(Step{progress_.step}, samples, begun);
  // The profile's time covers the local update, which comes after the meeting: leave room for it.
  const TimePoint due = clock_.when(end) - last_update_;
  if (world_.now() > due) {
    ++overruns_;
  } else {
    world_.sleep_until(due);
  }
}

Wishes Trainer::wishes() {
  const Recurrence::Moment before{progress_.step, asked_};
  const Recurrence::Moment after{progress_.step + 1, clock_.now() - paused_};
  asked_ = after.training;
  const bool out_of_time =
      options_.config.max_time && to_seconds(after.training) >= *options_.config.max_time;
  return {.stop = after.step >= last_step() || out_of_time || link_.stop_reason().has_value(),
          .evaluate = leads() && evaluations_.due(before, after),
          .checkpoint = leads() && checkpoints_.due(before, after)};
}

std::uint64_t Trainer::last_step() const {
  const double steps = std::ceil(
      options_.config.epochs * static_cast<double>(options_.feed.steps_per_epoch()) - 1e-6);
  return std::min(static_cast<std::uint64_t>(steps),
                  options_.config.max_steps.value_or(static_cast<std::uint64_t>(steps)));
}

void Trainer::account(const Spent& spent) {
  last_update_ = spent.update;
  phases_.add(Phase::compute, spent.update);
  phases_.add(Phase::communicate, spent.communicate);
  phases_.add(Phase::wait, spent.wait);
}

void Trainer::act_on(const Meeting& meeting, double learning_rate) {
  clock_.take_off(meeting.paused);
  paused_ = Duration::zero();
  progress_.round = meeting.round.value;
  progress_.samples += meeting.samples;
  progress_.training = clock_.now();
  loss_ = mean(meeting.loss_sum, meeting.samples);
  done_ = meeting.agreed.stop;
  log_round(meeting, learning_rate);
  const auto wanted_at_end = [&](const Every& every) {
    return done_ && every.unit != Every::Unit::never;
  };
  const bool evaluate = meeting.agreed.evaluate || wanted_at_end(options_.config.eval_every);
  const bool checkpoint =
      meeting.agreed.checkpoint || wanted_at_end(options_.config.checkpoint_every);
  if (evaluate || checkpoint) {
    const TimePoint start = world_.now();
    snapshot_and_checkpoint(evaluate, checkpoint);
    paused_ = world_.now() - start;
  }
}

void Trainer::snapshot_and_checkpoint(bool evaluate, bool checkpoint) {
  enter("snapshot");
  if (evaluate && options_.snapshots) {
    options_.snapshots->send({.round = progress_.round,
                              .samples = progress_.samples,
                              .epoch = epoch(),
                              .training_seconds = to_seconds(progress_.training)},
                             replica_);
  }
  if (checkpoint && leads()) {
    save_checkpoint();
  }
}

void Trainer::save_checkpoint() {
  log_.flush();
  const auto path = options_.folder.checkpoints() / checkpoint_name(progress_.round);
  write_checkpoint(path, progress_, options_.config.network, replica_);
  prune_checkpoints(options_.folder.checkpoints(), checkpoints_kept);
  wire::Checkpoint written;
  written.set_path(path.string());
  written.set_round(progress_.round);
  link_.report(written);
}

void Trainer::log_round(const Meeting& meeting, double learning_rate) {
  log_.write({{"round", progress_.round},
              {"step", progress_.step},
              {"epoch", epoch()},
              {"training_seconds", to_seconds(progress_.training)},
              {"samples", progress_.samples},
              {"round_samples", meeting.samples},
              {"loss", loss_},
              {"learning_rate", learning_rate},
              {"data_seconds", to_seconds(phases_.spent(Phase::data))},
              {"compute_seconds", to_seconds(phases_.spent(Phase::compute))},
              {"communicate_seconds", to_seconds(phases_.spent(Phase::communicate))},
              {"wait_seconds", to_seconds(phases_.spent(Phase::wait))},
              {"bytes_sent", world_.transport().traffic().bytes_sent}});
}

void Trainer::enter(const std::string& phase) {
  link_.set_status(status(phase));
}

wire::Heartbeat Trainer::status(const std::string& phase) const {
  wire::Heartbeat status;
  status.set_phase(phase);
  status.set_step(progress_.step);
  status.set_round(progress_.round);
  status.set_epoch(epoch());
  status.set_loss(loss_);
  status.set_job_samples(progress_.samples);
  status.set_job_seconds(to_seconds(progress_.training));
  status.set_session_samples(session_samples_);
  status.set_session_seconds(to_seconds(progress_.training - options_.start.training));
  status.set_data_seconds(to_seconds(phases_.spent(Phase::data)));
  status.set_compute_seconds(to_seconds(phases_.spent(Phase::compute)));
  status.set_communicate_seconds(to_seconds(phases_.spent(Phase::communicate)));
  status.set_wait_seconds(to_seconds(phases_.spent(Phase::wait)));
  status.set_bytes_sent(world_.transport().traffic().bytes_sent);
  status.set_overruns(overruns_);
  return status;
}

}  // namespace syncopate
