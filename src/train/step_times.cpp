#include "train/step_times.hpp"

#include <algorithm>

namespace syncopate {
namespace {

constexpr std::size_t forecast_window = 64;

}  // namespace

void PhaseClock::add(Phase phase, Duration spent) {
  spent_[static_cast<std::size_t>(phase)] += spent;
}

Duration PhaseClock::spent(Phase phase) const {
  const Duration under_way = phase_ == phase ? clock_.now() - since_ : Duration::zero();
  return spent_[static_cast<std::size_t>(phase)] + under_way;
}

void PhaseClock::switch_to(std::optional<Phase> phase) {
  const TimePoint now = clock_.now();
  if (phase_) {
    add(*phase_, now - since_);
  }
  phase_ = phase;
  since_ = now;
}

PassTimes StepTimes::end_pass() {
  const Duration whole = clock_.now() - begun_;
  const Duration forward = options_.emulated ? whole / 3 : forward_done_ - begun_;
  phases_.add(Phase::forward, forward);
  phases_.add(Phase::backward, whole - forward);
  return {.begun = begun_, .forward = forward, .whole = whole};
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

void StepTimes::report(MetricValues& metrics) const {
  const auto set = [&](Metric metric, Duration time) { metrics.set(metric, to_seconds(time)); };
  set(Metric::data_seconds, phases_.spent(Phase::data));
  set(Metric::compute_seconds, phases_.computing());
  set(Metric::forward_seconds, phases_.spent(Phase::forward));
  set(Metric::backward_seconds, phases_.spent(Phase::backward));
  set(Metric::update_seconds, phases_.spent(Phase::update));
  set(Metric::communicate_seconds, phases_.spent(Phase::communicate));
  set(Metric::wait_seconds, phases_.spent(Phase::wait));
  metrics.set(Metric::whole_batch_throughput, stand_alone_throughput());
}

void StepForecast::took(std::uint32_t samples, Duration duration) {
  if (samples == 0) {
    return;
  }
  sample_seconds_.push_back(to_seconds(duration) / samples);
  if (sample_seconds_.size() > forecast_window) {
    sample_seconds_.pop_front();
  }
}

Duration StepForecast::longest(std::uint32_t samples) const {
  return known() ? from_seconds(samples * *std::ranges::max_element(sample_seconds_))
                 : Duration::zero();
}

}  // namespace syncopate
