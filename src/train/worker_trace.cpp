#include "train/worker_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.hpp"

namespace syncopate {
namespace {

/// Lines until a trace gets sparser; see `Thinning`.
constexpr std::uint64_t lines_of_rounds = 8192;
constexpr std::uint64_t lines_of_batches = 2048;

/// A pause between two steps up to this is part of the slice of both, with the detail `rounds`.
constexpr Duration shortest_gap = std::chrono::microseconds(50);
/// A shorter wait for a batch is not shown there.
constexpr Duration shortest_data = std::chrono::microseconds(50);
/// A shorter time is only the check that there is no snapshot.
constexpr Duration shortest_snapshot = std::chrono::microseconds(10);

}  // namespace

WorkerTrace::WorkerTrace(const Clock& clock, const Options& options)
    : clock_(clock),
      detail_(options.detail),
      updates_first_(options.updates_first),
      round_(options.round),
      rounds_(lines_of_rounds),
      batches_(lines_of_batches) {
  if (detail_ == TraceDetail::off) {
    return;
  }
  const Member& worker = options.worker;
  log_.emplace(clock, options.folder.spans_of("worker", worker.rank),
               SpanLog::Json{{"process", "worker"},
                             {"rank", worker.rank.value},
                             {"device", worker.device},
                             {"host", worker.host},
                             {"pid", worker.pid},
                             {"machine", worker.machine},
                             {"trace", name_of_value(detail_)}},
               [](const std::string& reason) { log::warn("{}", reason); });
  kept_ = rounds_.keeps_next();
}

void WorkerTrace::waited_for_batch(TimePoint begun) {
  const TimePoint now = clock_.now();
  const Duration least = detail_ == TraceDetail::rounds ? shortest_data : Duration::zero();
  if (kept_ && now - begun >= least) {
    slice(trace_thread::wait, "batch", begun, now);
  }
}

void WorkerTrace::passed(const PassTimes& pass, std::uint64_t samples) {
  if (!kept_) {
    return;
  }
  const TimePoint forward_done = pass.begun + pass.forward;
  const TimePoint ended = pass.begun + pass.whole;
  if (detail_ == TraceDetail::rounds) {
    compute("compute", pass.begun, ended, samples);
  } else {
    compute("forward", pass.begun, forward_done, samples);
    compute("backward", forward_done, ended, samples);
  }
}

void WorkerTrace::synchronized(TimePoint begun, const Outcome& outcome, Duration held) {
  const TimePoint now = clock_.now();
  if (kept_) {
    const Spent& spent = outcome.spent;
    const TimePoint arrived = updates_first_ ? begun + spent.update : begun;
    const TimePoint ended = updates_first_ ? now : std::max(arrived, now - spent.update);
    const TimePoint communicating = std::max(arrived, ended - spent.communicate);
    const TimePoint waiting = std::max(arrived, communicating - spent.wait);
    if (updates_first_) {
      compute("update", begun, arrived, 0);
    }
    slice(trace_thread::wait, "snapshot of another", std::max(arrived, waiting - held), waiting);
    blocked(outcome, {arrived, waiting, communicating, ended});
    if (!updates_first_) {
      compute("update", ended, ended + spent.update, 0);
    }
  }
  if (outcome.sync_round) {
    end_round(outcome.sync_round->round.value,
              outcome.exchanges.empty() ? now : outcome.exchanges.back().ended);
  }
}

/// Writes the time in which the worker was held, the rounds that ended behind computing, and the
/// arrows.
void WorkerTrace::blocked(const Outcome& outcome, const Held& held) {
  for (const BackgroundExchange& exchange : outcome.exchanges) {
    exchanged(exchange, held);
  }
  slice(trace_thread::wait, "wait", held.waiting, held.communicating);
  slice(trace_thread::communication, "communicate", held.communicating, held.ended);
  communicated_until_ = std::max(communicated_until_, held.ended);
  const bool in_background = outcome.sync_round && !outcome.exchanges.empty() &&
                             outcome.exchanges.back().round == outcome.sync_round->round;
  const bool held_up = held.arrived < held.ended && held.waiting < held.ended;
  if (outcome.sync_round && !in_background && held_up) {
    log_->flow({.round = outcome.sync_round->round.value,
                .arrived = held.arrived,
                .ended = held.ended,
                .thread = held.communicating < held.ended ? trace_thread::communication
                                                          : trace_thread::wait});
  }
}

/// The slice ends where the communication that held the worker begins, so that slices do not
/// overlap. The arrow ends with the round, inside one of the two slices.
void WorkerTrace::exchanged(const BackgroundExchange& exchange, const Held& held) {
  const TimePoint begun = std::max(exchange.begun, communicated_until_);
  const TimePoint ended = std::min(exchange.ended, held.communicating);
  if (begun < ended) {
    log_->slice({.thread = trace_thread::communication,
                 .name = "exchange",
                 .begun = begun,
                 .ended = ended,
                 .round = exchange.round.value});
    rounds_.wrote(1);
    communicated_until_ = ended;
  }
  const bool held_at_the_end =
      held.communicating < held.ended && exchange.ended > held.communicating;
  if (!held_at_the_end && communicated_until_ < exchange.begun) {
    return;  // it took no time
  }
  log_->flow({.round = exchange.round.value,
              .arrived = on_compute(exchange.begun),
              .ended = held_at_the_end ? std::min(exchange.ended, held.ended) : communicated_until_,
              .thread = trace_thread::communication});
}

/// Returns the moment, or the end of the slice before it if nothing is computed then.
TimePoint WorkerTrace::on_compute(TimePoint moment) const {
  const auto found = std::find_if(computed_.rbegin(), computed_.rend(),
                                  [&](const Interval& one) { return one.begun < moment; });
  return found == computed_.rend() ? moment : std::min(moment, found->ended);
}

void WorkerTrace::saved(TimePoint begun) {
  const TimePoint now = clock_.now();
  if (log_ && now - begun >= shortest_snapshot) {
    slice(trace_thread::wait, "snapshot", begun, now);
  }
}

void WorkerTrace::bytes_sent(double bytes) {
  if (kept_) {
    log_->counter("bytes sent", clock_.now(), bytes);
    rounds_.wrote(1);
  }
}

void WorkerTrace::loaded(TimePoint begun, TimePoint ended) {
  if (!log_) {
    return;
  }
  const MutexLock lock(loader_mutex_);
  if (batches_.keeps_next()) {
    log_->slice({.thread = trace_thread::loader, .name = "batch", .begun = begun, .ended = ended});
    batches_.wrote(1);
  }
}

void WorkerTrace::flush() {
  if (log_) {
    end_compute();
    log_->flush();
  }
}

/// Merges the slices of a step if nothing lies between them.
void WorkerTrace::compute(std::string_view name, TimePoint begun, TimePoint ended,
                          std::uint64_t samples) {
  if (ended <= begun) {
    return;
  }
  computed_.push_back({begun, ended});
  const bool one_step = name != "update" && name != "backward";
  if (detail_ == TraceDetail::rounds && computing_ && begun - computing_->ended <= shortest_gap) {
    computing_->name = "compute";
    computing_->ended = ended;
    computing_->steps += one_step ? 1 : 0;
    computing_->samples += samples;
    return;
  }
  end_compute();
  computing_ = SpanLog::Slice{.thread = trace_thread::compute,
                              .name = name,
                              .begun = begun,
                              .ended = ended,
                              .steps = one_step ? 1U : 0U,
                              .samples = samples};
}

void WorkerTrace::end_compute() {
  if (const auto done = std::exchange(computing_, std::nullopt)) {
    write(*done);
  }
}

void WorkerTrace::slice(std::string_view thread, std::string_view name, TimePoint begun,
                        TimePoint ended) {
  write({.thread = thread, .name = name, .begun = begun, .ended = ended});
}

void WorkerTrace::write(SpanLog::Slice slice) {
  if (slice.ended > slice.begun) {
    slice.round = round_ + 1;
    log_->slice(slice);
    rounds_.wrote(1);
  }
}

/// `ended`: the end of the round, before the next contribution is handed over.
void WorkerTrace::end_round(std::uint64_t round, TimePoint ended) {
  if (log_) {
    end_compute();
    round_ = round;
    kept_ = rounds_.keeps_next();
    while (computed_.size() > 1 && computed_[1].begun < ended) {
      computed_.pop_front();
    }
  }
}

}  // namespace syncopate
