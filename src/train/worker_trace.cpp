#include "train/worker_trace.hpp"

#include <algorithm>
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
/// A shorter hand-over is the check that there is none.
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
  if (kept_) {
    const Spent& spent = outcome.spent;
    const TimePoint now = clock_.now();
    const TimePoint arrived = updates_first_ ? begun + spent.update : begun;
    const TimePoint ended = updates_first_ ? now : std::max(arrived, now - spent.update);
    const TimePoint communicating = std::max(arrived, ended - spent.communicate);
    const TimePoint waiting = std::max(arrived, communicating - spent.wait);
    if (updates_first_) {
      compute("update", begun, arrived, 0);
    }
    slice(trace_thread::wait, "snapshot of another", std::max(arrived, waiting - held), waiting);
    slice(trace_thread::wait, "wait", waiting, communicating);
    slice(trace_thread::communication, "communicate", communicating, ended);
    const bool held_up = arrived < ended && waiting < ended;
    if (outcome.sync_round && held_up) {
      log_->flow(
          {.round = outcome.sync_round->round.value,
           .arrived = arrived,
           .ended = ended,
           .thread = communicating < ended ? trace_thread::communication : trace_thread::wait});
    }
    if (!updates_first_) {
      compute("update", ended, ended + spent.update, 0);
    }
  }
  if (outcome.sync_round) {
    end_round(outcome.sync_round->round.value);
  }
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

/// The slices of a step become one where nothing lies between them.
void WorkerTrace::compute(std::string_view name, TimePoint begun, TimePoint ended,
                          std::uint64_t samples) {
  if (ended <= begun) {
    return;
  }
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

void WorkerTrace::end_round(std::uint64_t round) {
  if (log_) {
    end_compute();
    round_ = round;
    kept_ = rounds_.keeps_next();
  }
}

}  // namespace syncopate
