// What a trainer says of itself: heartbeats, and the log of its rounds.
#include "report/counts.hpp"
#include "train/trainer.hpp"

namespace syncopate {
namespace {

/// To put a histogram into a message costs more than the rest of a status.
constexpr Duration telling_every = std::chrono::milliseconds(200);

}  // namespace

/// Snapshots are no training.
std::uint64_t Trainer::evaluation_bytes() const {
  return options_.evaluator ? world_.transport().traffic_to(*options_.evaluator).bytes_sent : 0;
}

void Trainer::log_round(const SyncRound& meeting, const OwnContribution& own,
                        double learning_rate) {
  const std::uint64_t snapshots = evaluation_bytes();  // before all bytes, of which they are a part
  log_.write({{"round", progress_.round},
              {"step", progress_.step},
              {"epoch", epoch()},
              {"training_seconds", to_seconds(progress_.training)},
              {"samples", progress_.samples},
              {"round_samples", meeting.samples},
              {"own_steps", own.steps},
              {"own_samples", own.samples},
              {"loss", loss_},
              {"learning_rate", learning_rate},
              {"data_seconds", to_seconds(times_.phases().spent(Phase::data))},
              {"compute_seconds", to_seconds(times_.phases().computing())},
              {"forward_seconds", to_seconds(times_.phases().spent(Phase::forward))},
              {"backward_seconds", to_seconds(times_.phases().spent(Phase::backward))},
              {"update_seconds", to_seconds(times_.phases().spent(Phase::update))},
              {"communicate_seconds", to_seconds(times_.phases().spent(Phase::communicate))},
              {"wait_seconds", to_seconds(times_.phases().spent(Phase::wait))},
              {"bytes_sent", world_.transport().traffic().bytes_sent - snapshots}});
}

void Trainer::enter(const std::string& phase) {
  if (world_.now() >= next_telling_) {
    next_telling_ = world_.now() + telling_every;
    staleness_told_ = to_wire(staleness_);
  }
  link_.set_status(status(phase));
}

wire::Heartbeat Trainer::status(const std::string& phase) const {
  wire::Heartbeat status;
  status.set_phase(phase);
  status.set_computing(phase == phase_of_data || phase == phase_of_computing);
  status.set_expected_seconds(to_seconds(expected_));
  status.set_step(progress_.step);
  status.set_round(progress_.round);
  status.set_epoch(epoch());
  status.set_loss(loss_);
  status.set_job_samples(progress_.samples);
  status.set_job_seconds(to_seconds(progress_.training));
  status.set_session_samples(session_samples_);
  status.set_session_seconds(to_seconds(progress_.training - options_.start.training));
  times_.put_into(status);
  status.set_evaluation_bytes(evaluation_bytes());
  const Traffic traffic = world_.transport().traffic();
  status.set_bytes_sent(traffic.bytes_sent);
  status.set_bytes_handed_over(traffic.bytes_zero_copy);
  status.set_overruns(overruns_);
  status.set_bytes_received(scheme_.bytes_received());
  *status.mutable_staleness() = staleness_told_;
  status.set_dropped(dropped_);
  status.set_skipped(skipped_);
  status.set_cancelled(cancelled_);
  status.set_aggregate(scheme_.aggregate());
  const CompressionStats compression = scheme_.compression();
  status.set_compressed_values(compression.values);
  status.set_compressed_bytes(compression.encoded_bytes);
  status.set_compression_error(compression.error());
  return status;
}

}  // namespace syncopate
