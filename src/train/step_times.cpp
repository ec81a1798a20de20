#include "train/step_times.hpp"

namespace syncopate {

void StepTimes::end_pass() {
  const Duration whole = clock_.now() - begun_;
  const Duration forward = options_.emulated ? whole / 3 : forward_done_ - begun_;
  phases_.add(Phase::forward, forward);
  phases_.add(Phase::backward, whole - forward);
}

void StepTimes::end_step(std::uint32_t samples) {
  if (samples == options_.batch_size) {
    ++whole_steps_;
    whole_samples_ += samples;
    whole_busy_ += busy() - busy_before_;
  }
}

double StepTimes::stand_alone_throughput() const {
  constexpr std::uint64_t enough = 3;
  return whole_steps_ >= enough && whole_busy_ > Duration::zero()
             ? static_cast<double>(whole_samples_) / to_seconds(whole_busy_)
             : options_.known_throughput;
}

void StepTimes::put_into(wire::Heartbeat& status) const {
  status.set_data_seconds(to_seconds(phases_.spent(Phase::data)));
  status.set_compute_seconds(to_seconds(phases_.computing()));
  status.set_forward_seconds(to_seconds(phases_.spent(Phase::forward)));
  status.set_backward_seconds(to_seconds(phases_.spent(Phase::backward)));
  status.set_update_seconds(to_seconds(phases_.spent(Phase::update)));
  status.set_communicate_seconds(to_seconds(phases_.spent(Phase::communicate)));
  status.set_wait_seconds(to_seconds(phases_.spent(Phase::wait)));
  status.set_stand_alone_throughput(stand_alone_throughput());
}

}  // namespace syncopate
