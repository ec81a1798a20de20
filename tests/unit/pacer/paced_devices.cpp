#include "tests/unit/pacer/paced_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate {
namespace {

constexpr std::uint64_t most_events = 400'000;

Pacer::Options pacer_options(const PacedDevices::Options& options) {
  Pacer::Options result{.batch_sizes = {},
                        .rule = options.rule,
                        .round_time = options.round_time,
                        .overlap = options.overlap,
                        .longest_period = options.longest_period,
                        .global_batch = options.global_batch};
  for (const auto& device : options.devices) result.batch_sizes.push_back(device.batch_size);
  return result;
}

}  // namespace

PacedDevices::PacedDevices(Options options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      pacer_(pacer_options(options_)),
      lives_(options_.devices.size()) {
  for (std::uint32_t rank = 0; rank < lives_.size(); ++rank) begin_life(rank);
}

void PacedDevices::run(std::uint64_t synchronizations) {
  for (std::uint64_t events = 0; held_.size() < synchronizations && alive() > 0 && broken_.empty();
       ++events) {
    promise(!events_.empty(), fmt::format("everybody waits in round {}", open_));
    promise(events < most_events, fmt::format("round {} does not end", open_));
    if (!broken_.empty()) return;
    const auto next = events_.begin();
    now_ = next->first;
    const auto event = std::move(next->second);
    events_.erase(next);
    event();
  }
}

void PacedDevices::slow_down(std::uint32_t rank, int times) {
  options_.devices[rank].sample *= times;
  options_.devices[rank].overhead *= times;
}

void PacedDevices::speed_up(std::uint32_t rank, int times) {
  options_.devices[rank].sample /= times;
  options_.devices[rank].overhead /= times;
}

std::size_t PacedDevices::alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(lives_, &Life::alive));
}

double PacedDevices::busy_share(std::uint32_t rank) const {
  const Life& life = lives_[rank];
  return 1 - to_seconds(life.waited) / to_seconds(now_ - life.born);
}

void PacedDevices::promise(bool holds, const std::string& what) {
  if (!holds && broken_.empty())
    broken_ = fmt::format("at {} s: {}", to_seconds(now_.time_since_epoch()), what);
}

void PacedDevices::after(Duration delay, std::function<void()> event) {
  events_.emplace(now_ + delay, std::move(event));
}

/// Runs `event` after `delay`, unless the device has died by then.
void PacedDevices::live(std::uint32_t rank, std::function<void(Life&)> event, Duration delay) {
  after(delay, [this, rank, life = lives_[rank].life, event = std::move(event)] {
    if (lives_[rank].alive && lives_[rank].life == life) event(lives_[rank]);
  });
}

void PacedDevices::begin_life(std::uint32_t rank) {
  Life& life = lives_[rank];
  const FirstPace first = first_pace(options_.rule, options_.devices[rank].batch_size,
                                     options_.global_batch > 0 ? 1 : 0);
  life = {.life = life.life + 1,
          .round = pacer_.state().round,
          .entered = pacer_.state().round - 1,
          .next = pacer_.state().round,
          .size = first.step_samples,
          .sync_after = first.sync_after,
          .reduced = pacer_.state().round - 1,
          .born = now_};
  if (first.sync_after) decided_.insert({rank, life.life, life.round});
  begin_step(rank);
}

Duration PacedDevices::draw(const Device& device, std::uint32_t samples) {
  const double factor = 1 + options_.jitter * (2 * random_.uniform() - 1);
  const double hiccup = random_.uniform() < options_.hiccups ? 20 : 1;
  return from_seconds(to_seconds(device.overhead + device.sample * samples) * factor * hiccup);
}

void PacedDevices::begin_step(std::uint32_t rank) {
  Life& life = lives_[rank];
  life.in_hand = life.size;
  const Duration takes = draw(options_.devices[rank], life.in_hand);
  live(
      rank, [this, rank, takes](Life&) { end_step(rank, takes); }, takes);
}

void PacedDevices::end_step(std::uint32_t rank, Duration took) {
  Life& life = lives_[rank];
  ++life.steps;
  life.report = {.round = life.round,
                 .steps = life.steps,
                 .samples = life.in_hand,
                 .took = took,
                 .synchronizes = life.sync_after && life.steps >= *life.sync_after,
                 .period = adopted_period(life.round, 1, life.wanted_period),
                 .communicated = std::exchange(life.communicated, Duration::zero())};
  if (random_.uniform() < options_.deaths) return die(rank);
  if (random_.uniform() < options_.returns) revive();
  if (!life.report.synchronizes) {
    send(rank, life.report);
    begin_step(rank);
  } else if (life.reduced < life.entered) {
    wait(rank);
  } else {
    enter(rank);
  }
}

void PacedDevices::enter(std::uint32_t rank) {
  Life& life = lives_[rank];
  send(rank, life.report);
  life.entered = life.round;
  life.period = life.report.period;
  life.round += life.period;
  promise(life.period <= options_.longest_period, "a period is too long");
  life.steps = 0;
  life.sync_after.reset();
  options_.overlap ? begin_step(rank) : wait(rank);
}

void PacedDevices::wait(std::uint32_t rank) {
  lives_[rank].waits_since = now_;
}

void PacedDevices::go_on(std::uint32_t rank) {
  Life& life = lives_[rank];
  life.waited += now_ - *life.waits_since;
  life.waits_since.reset();
  options_.overlap ? enter(rank) : begin_step(rank);
}

void PacedDevices::send(std::uint32_t rank, const StepReport& report) {
  after(options_.latency, [this, rank, report, life = lives_[rank].life] {
    if (lives_[rank].life != life) return;
    const Paces paces = pacer_.stepped(Rank{rank}, report, now_);
    if (report.synchronizes && lives_[rank].present) {
      promise(report.round >= open_,
              fmt::format("{} enters synchronization {}, {} is open", rank, report.round, open_));
      promise(entered_[report.round].insert(rank).second,
              fmt::format("{} enters synchronization {} twice", rank, report.round));
      lives_[rank].next = report.round + report.period;
      Held& holding = holding_[report.round];
      if (entered_[report.round].size() == 1) holding.first = now_;
      holding.last = now_;
      holding.last_rank = rank;
      holding.steps[rank] = report.steps;
    }
    complete_synchronizations();
    deliver_all(paces);
  });
}

void PacedDevices::die(std::uint32_t rank) {
  Life& life = lives_[rank];
  life.alive = false;
  life.waits_since.reset();
  after(options_.detection, [this, rank] {
    lives_[rank].present = false;
    for (auto& [round, ranks] : entered_) ranks.erase(rank);
    const Paces paces = pacer_.left(Rank{rank}, now_);
    complete_synchronizations();
    deliver_all(paces);
  });
}

void PacedDevices::revive() {
  for (std::uint32_t rank = 0; rank < lives_.size(); ++rank) {
    if (lives_[rank].present) continue;
    const Paces paces = pacer_.joined(Rank{rank}, now_);
    begin_life(rank);
    deliver_all(paces);
    return;
  }
}

void PacedDevices::deliver_all(const Paces& paces) {
  for (const Pace& pace : paces) {
    const Life& life = lives_[pace.worker.value];
    promise(life.present, fmt::format("{} receives a decision, but is gone", pace.worker.value));
    if (pace.sync_after && pace.reason != PaceReason::resized) {
      const Mark mark{pace.worker.value, life.life, pace.round};
      promise(*pace.sync_after >= 1, "a synchronization without a step");
      promise(pace.round >= open_ && life.next - life.period <= open_ - 1,
              fmt::format("decided to synchronize in {}, {} is open", pace.round, open_));
      promise(decided_.insert(mark).second,
              fmt::format("{} receives two decisions in {}", mark.rank, mark.round));
    }
    live(
        pace.worker.value, [this, pace](Life&) { deliver(pace); }, options_.latency);
  }
}

/// Gives a decision to its device; it has no effect if the device is in another round.
void PacedDevices::deliver(const Pace& pace) {
  Life& life = lives_[pace.worker.value];
  life.size = pace.step_samples;
  life.wanted_period = pace.period;
  if (pace.round == life.round && pace.sync_after) life.sync_after = pace.sync_after;
}

/// Every device present whose round it is has entered the open synchronization.
bool PacedDevices::is_complete() const {
  const auto present = [](const Life& life) { return life.present; };
  return std::ranges::any_of(lives_, present) &&
         std::ranges::none_of(
             lives_, [this](const Life& life) { return life.present && life.next <= open_; });
}

void PacedDevices::complete_synchronizations() {
  if (!is_complete()) {
    return promise(pacer_.state().round == open_,
                   fmt::format("round {} opened too early", open_ + 1));
  }
  for (; is_complete(); ++open_) {
    const std::set<std::uint32_t> ranks = entered_[open_];
    if (ranks.empty()) continue;  // those whose round it was are dead
    after(options_.synchronization, [this, round = open_, ranks] { deliver_result(round, ranks); });
    held_.push_back(holding_[open_]);
  }
  promise(pacer_.state().round == open_, fmt::format("round {} not opened", open_));
}

void PacedDevices::deliver_result(std::uint64_t round, const std::set<std::uint32_t>& ranks) {
  for (const std::uint32_t rank : ranks) {
    Life& life = lives_[rank];
    if (!life.alive || life.reduced >= round) continue;
    life.reduced = round;
    life.communicated = options_.synchronization;
    if (life.waits_since) go_on(rank);
  }
}

}  // namespace syncopate
