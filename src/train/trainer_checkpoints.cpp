// What a trainer has tested and saved: the model, and with it what every worker remembers.
#include <utility>

#include "checkpoint/gather_states.hpp"
#include "train/trainer.hpp"

namespace syncopate {
namespace {

bool is_wanted(const Every& every) {
  return every.unit != Every::Unit::never;
}

}  // namespace

/// The model before the first step, from which everything that follows may be checked.
void Trainer::keep_the_first() {
  if (options_.start == Progress{} && is_wanted(options_.config.checkpoint_every)) {
    const TimePoint start = world_.now();
    keep(/*evaluate=*/false, /*checkpoint=*/true);
    pause_since(start);
  }
}

void Trainer::checkpoint_with_all(bool evaluate) {
  enter("checkpoint");
  ModelSnapshot model = model_with_all_states();
  if (options_.sync_mode == SyncMode::local_rounds) {
    go_on_together(model);
  }
  keep(evaluate, /*checkpoint=*/true, std::move(model));
}

/// Of the worker that leads; the others hand in what they remember.
ModelSnapshot Trainer::model_with_all_states() {
  if (!options_.leads) {
    send_states(world_, link_.view(), own_states());
    return {};
  }
  ModelSnapshot model = copy_of_model();
  model.states.merge(in_checkpoint(options_.rank, own_states()));
  model.states.merge(gather_states(world_, link_, from_seconds(options_.config.wait_limit),
                                   [this] { scheme_.agree_after_failures(); }));
  return model;
}

/// Workers that are paced by time depend on the moments at which they go on. The time until then is off
/// the training clock, which goes on from what the checkpoint says, as in a run that is resumed here.
void Trainer::go_on_together(ModelSnapshot& model) {
  scheme_.restart();
  const wire::PacerMemory pacer = link_.restart({}, [this] { scheme_.agree_after_failures(); });
  if (pacer.workers_size() > 0) {
    model.states[state_of_pacer] = to_state(pacer);
  }
  clock_.take_off(clock_.now() - progress_.training);
  begun_ = machine_begun_ = progress_.training;
  asked_to_evaluate_ = asked_for_checkpoint_ = moment();
}

States Trainer::own_states() const {
  States states = scheme_.worker_states();
  states[state_of_loop] = to_state({.step = progress_.step,
                                    .position = batches_.position(),
                                    .speed_share = estimate_.share(),
                                    .training = progress_.training});
  if (options_.own_optimizers) {
    states[state_of_optimizer] = replica_.optimizer_state();
  }
  return states;
}

/// The model at the end is tested and saved, unless the last round has seen to it.
void Trainer::keep_the_last() {
  const bool evaluate = is_wanted(options_.config.eval_every) && tested_ != progress_.round;
  const bool checkpoint = is_wanted(options_.config.checkpoint_every) && saved_ != progress_.round;
  if (checkpoint && !alone()) {
    keep(evaluate, checkpoint, model_with_all_states());
  } else {
    keep(evaluate, checkpoint);
  }
  if (snapshots_) {
    snapshots_->finish();
  }
}

void Trainer::keep(bool evaluate, bool checkpoint) {
  keep(evaluate, checkpoint,
       snapshots_ && (evaluate || checkpoint) ? copy_of_model() : ModelSnapshot{});
}

void Trainer::keep(bool evaluate, bool checkpoint, ModelSnapshot model) {
  enter("snapshot");
  if (evaluate) {
    tested_ = progress_.round;
  }
  if (checkpoint) {
    saved_ = progress_.round;
    log_.flush();
  }
  if (snapshots_ && (evaluate || checkpoint)) {
    snapshots_->keep({.stamp = {.round = progress_.round,
                                .samples = progress_.samples,
                                .epoch = epoch(),
                                .training_seconds = to_seconds(progress_.training)},
                      .progress = progress_,
                      .evaluate = evaluate,
                      .checkpoint = checkpoint,
                      .model = [model = std::move(model)]() mutable { return std::move(model); }});
  }
}

ModelSnapshot Trainer::copy_of_model() {
  const ModelParts model = scheme_.model(replica_);
  ModelSnapshot copy{.params = {model.params.begin(), model.params.end()},
                     .buffers = {model.buffers.begin(), model.buffers.end()},
                     .states = scheme_.states()};
  copy.states[state_of_optimizer] = replica_.optimizer_state();
  const std::vector<WorkerPosition> positions = scheme_.positions();
  for (std::uint32_t rank = 0; rank < positions.size(); ++rank) {
    copy.states[prefix_of(Rank{rank}) + state_of_loop] = to_state({.step = positions[rank].step,
                                                                   .position = positions[rank].data,
                                                                   .training = progress_.training});
  }
  return copy;
}

}  // namespace syncopate
