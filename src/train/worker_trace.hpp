#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "base/mutex.hpp"
#include "report/run_folder.hpp"
#include "runtime/job_view.hpp"
#include "scheme/scheme.hpp"
#include "spec/config.hpp"
#include "telemetry/span_log.hpp"
#include "telemetry/thinning.hpp"
#include "train/step_times.hpp"

namespace syncopate {

/// A worker's use of time as slices on four threads: *compute* (passes and local updates),
/// *communication*, *wait* (for batches, other workers and snapshots) and *loader* (which prepares
/// batches). With detail `rounds`, steps of a round that follow each other at once are one slice;
/// with `steps`, forward, backward and update of each step are slices.
///
/// A synchronization behind computing is a slice `exchange` of *communication*, which begins when
/// the worker hands its contribution over; if it delayed the worker in the end, `communicate`
/// follows.
///
/// Passes, waits for batches and snapshots are measured directly. Of a synchronization, only its
/// duration and its shares are measured: the trace shows waiting before communication, and the
/// local update before or after both.
///
/// Thread: one; that of `loaded` may be another.
class WorkerTrace {
 public:
  struct Options {
    TraceDetail detail = TraceDetail::rounds;
    const RunFolder& folder;
    const Member& worker;
    std::uint64_t round = 0;     ///< ended before the first step
    bool updates_first = false;  ///< the optimizer steps before workers synchronize, not after
  };

  /// `clock` must outlive this.
  WorkerTrace(const Clock& clock, const Options& options);

  /// The wait for a mini-batch, from `begun` until now.
  void waited_for_batch(TimePoint begun);
  void passed(const PassTimes& pass, std::uint64_t samples);
  /// The scheme's part of a step, from `begun` until now. `held`: the part of it in which other
  /// members handed over a model or wrote a checkpoint.
  void synchronized(TimePoint begun, const Outcome& outcome, Duration held);
  /// This worker has handed over a model or written a checkpoint, from `begun` until now.
  void saved(TimePoint begun);
  void bytes_sent(double bytes);
  /// The loader has prepared a batch. Thread: any.
  void loaded(TimePoint begun, TimePoint ended);
  void flush();

 private:
  /// The parts of a synchronization that held the worker: waiting, then communication.
  struct Held {
    TimePoint arrived;
    TimePoint waiting;
    TimePoint communicating;
    TimePoint ended;
  };

  void blocked(const Outcome& outcome, const Held& held);
  void exchanged(const BackgroundExchange& exchange, const Held& held);
  TimePoint on_compute(TimePoint moment) const;
  void compute(std::string_view name, TimePoint begun, TimePoint ended, std::uint64_t samples);
  void end_compute();
  void slice(std::string_view thread, std::string_view name, TimePoint begun, TimePoint ended);
  void write(SpanLog::Slice slice);
  void end_round(std::uint64_t round, TimePoint ended);

  const Clock& clock_;
  TraceDetail detail_;
  bool updates_first_;
  std::uint64_t round_;         ///< the last that has ended
  std::optional<SpanLog> log_;  ///< empty: no trace is written
  Thinning rounds_;
  bool kept_ = false;                        ///< this round is written
  std::optional<SpanLog::Slice> computing_;  ///< of this round, not written yet

  struct Interval {
    TimePoint begun;
    TimePoint ended;
  };
  std::deque<Interval> computed_;   ///< since the end of the last round and before, in order
  TimePoint communicated_until_{};  ///< the end of the last slice of the thread communication

  Mutex loader_mutex_;
  Thinning batches_ GUARDED_BY(loader_mutex_);
};

}  // namespace syncopate
