// The session's snapshots and checkpoints: the model, and with it the states of all workers.
#include <utility>

#include "checkpoint/worker_states.hpp"
#include "train/worker_session.hpp"

namespace syncopate {

/// True if a test has become due since the last call, and this worker leads.
bool WorkerSession::evaluation_due() {
  return evaluations_.due(moment()) && leads();
}

bool WorkerSession::checkpoint_due() {
  return checkpoints_.due(moment()) && leads();
}

/// Saves the model before the first step, from which everything that follows may be checked.
void WorkerSession::save_first() {
  if (setup_.progress() == TrainingProgress{} && checkpoints_.is_active()) {
    const TimePoint start = world_.now();
    save(/*evaluate=*/false, /*checkpoint=*/true);
    held_since(start);
    pause_since(start);
  }
}

void WorkerSession::save_all_workers(bool evaluate) {
  report_.enter("checkpoint");
  ModelSnapshot model = model_with_all_states();
  if (policy_->rules().restarts_at_checkpoints) {
    restart_all_workers(model);
  }
  save(evaluate, /*checkpoint=*/true, std::move(model));
}

/// The leading worker gathers the states that the others send. The others return an empty model.
ModelSnapshot WorkerSession::model_with_all_states() {
  if (!leads()) {
    send_states(world_, link_.view(), own_states());
    return {};
  }
  ModelSnapshot model = copy_of_model();
  model.states.merge(in_checkpoint(options_.rank, own_states()));
  model.states.merge(gather_states(world_, link_, from_seconds(config().wait_limit),
                                   [this] { agree_after_failures(); }));
  return model;
}

/// Restarts all workers at one moment, on which workers that are paced by time depend. The time
/// until then is off the training clock, which continues from the reading in the checkpoint, as in
/// a run that is resumed here.
void WorkerSession::restart_all_workers(ModelSnapshot& model) {
  const wire::PacerMemory pacer = link_.restart({}, {}, [this] { agree_after_failures(); });
  restart_rounds(*scheme_, pacer);
  if (pacer.workers_size() > 0) {
    model.states[state_of_pacer] = to_state(pacer);
  }
  clock_.take_off(clock_.now() - progress_.training);
  device_.restart(progress_.training);
  evaluations_.restart(moment());
  checkpoints_.restart(moment());
}

void WorkerSession::restart_rounds(Scheme& scheme, const wire::PacerMemory& pacer) const {
  auto* const rounds = offered<HasRounds>(scheme);
  if (rounds == nullptr) {
    return;
  }
  rounds->restart({pacer.periods().begin(), pacer.periods().end()}, options_.rank);
}

void WorkerSession::agree_after_failures() {
  if (auto* const rounds = offered<HasRounds>(*scheme_)) {
    rounds->agree_after_failures();
  }
}

States WorkerSession::own_states() const {
  const auto* const saves = offered<SavesState>(std::as_const(*scheme_));
  States states = saves ? saves->worker_states() : States();
  states[state_of_loop] = to_state({.step = progress_.step,
                                    .position = position_,
                                    .speed_share = estimate_.share(),
                                    .training = progress_.training});
  if (has_own_optimizer()) {
    states[state_of_optimizer] = replica_.optimizer_state();
  }
  return states;
}

/// Tests and saves the model at the end, unless the last round has done so.
void WorkerSession::save_last() {
  const bool evaluate = evaluations_.is_active() && tested_ != progress_.round;
  const bool checkpoint = checkpoints_.is_active() && saved_ != progress_.round;
  if (checkpoint && policy_->rules().saves_all_workers) {
    save(evaluate, checkpoint, model_with_all_states());
  } else {
    save(evaluate, checkpoint);
  }
  if (snapshots_) {
    snapshots_->finish();
  }
}

void WorkerSession::save(bool evaluate, bool checkpoint) {
  save(evaluate, checkpoint,
       snapshots_ && (evaluate || checkpoint) ? copy_of_model() : ModelSnapshot{});
}

void WorkerSession::save(bool evaluate, bool checkpoint, ModelSnapshot model) {
  report_.enter("snapshot");
  if (evaluate) {
    tested_ = progress_.round;
  }
  if (checkpoint) {
    saved_ = progress_.round;
    report_.flush();
  }
  if (snapshots_ && (evaluate || checkpoint)) {
    snapshots_->save({.stamp = {.round = progress_.round,
                                .samples = progress_.samples,
                                .epoch = epoch(),
                                .training_seconds = to_seconds(progress_.training)},
                      .progress = progress_,
                      .evaluate = evaluate,
                      .checkpoint = checkpoint,
                      .model = [model = std::move(model)]() mutable { return std::move(model); }});
  }
}

ModelSnapshot WorkerSession::copy_of_model() {
  const ModelParts model = scheme_->model(replica_);
  const auto* const saves = offered<SavesState>(std::as_const(*scheme_));
  ModelSnapshot copy{.params = {model.params.begin(), model.params.end()},
                     .buffers = {model.buffers.begin(), model.buffers.end()},
                     .states = saves ? saves->states() : States()};
  copy.states[state_of_optimizer] = replica_.optimizer_state();
  const auto* const knows = offered<KnowsPositions>(std::as_const(*scheme_));
  const auto positions = knows ? knows->positions() : std::vector<WorkerPosition>();
  for (std::uint32_t rank = 0; rank < positions.size(); ++rank) {
    copy.states[prefix_of(Rank{rank}) + state_of_loop] = to_state({.step = positions[rank].step,
                                                                   .position = positions[rank].data,
                                                                   .training = progress_.training});
  }
  return copy;
}

}  // namespace syncopate
