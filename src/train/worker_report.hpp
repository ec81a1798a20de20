#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"
#include "scheme/scheme.hpp"
#include "telemetry/lenient_lines.hpp"
#include "telemetry/member_status.hpp"
#include "train/program_waits.hpp"
#include "train/step_times.hpp"

namespace syncopate {

/// A program whose own loop computes the gradients of a worker.
struct ProgramLoop {
  std::shared_ptr<const ProgramWaits> waits;  ///< what it waits for outside its steps
  /// Gets each line of the worker's log, in the thread of the session; may be empty.
  std::function<void(const std::string& line)> on_round = {};
};

/// The reports of a worker: its status, which heartbeats pull while this lives, and the log of its
/// rounds.
///
/// Thread: one. The heartbeat task reads the status.
class WorkerReport {
 public:
  struct Options {
    Rank rank;
    RunFolder folder;
    TrainingProgress start;                   ///< zero, or the progress of the checkpoint
    std::optional<ProgramLoop> program = {};  ///< whose loop trains; empty: none does
  };

  /// A synchronization round in the log.
  struct LoggedRound {
    std::uint64_t samples = 0;  ///< of all workers
    OwnContribution own{};
    double learning_rate = 0;
  };

  /// Phases of a step in which the device computes, or waits for its batch.
  static constexpr std::string_view data = "data";
  static constexpr std::string_view computing = "backward";

  WorkerReport(World& world, MemberLink& link, Options options);
  ~WorkerReport();
  WorkerReport(const WorkerReport&) = delete;
  WorkerReport& operator=(const WorkerReport&) = delete;

  void enter(std::string_view phase);
  /// The current step takes at most `longest`; zero: unknown.
  void expect(Duration longest);
  void count(Metric metric, std::uint64_t more = 1);
  void step(const TrainingProgress& progress, std::uint64_t samples);
  void progress(const TrainingProgress& progress, double epoch);
  void loss(double mean);
  /// A pass over samples of this worker, before the update that follows from it.
  void classified(const PassResult& pass);
  /// Evaluation, a snapshot or a checkpoint has held this worker for `time`.
  void held(Duration time);
  /// As in the last line of the log.
  double bytes_sent() const { return status_.metrics()[Metric::traffic_bytes]; }
  /// The end of a step, by the job's epochs and the training clock.
  struct StepEnd {
    double epoch;
    Duration training;
  };
  void outcome(const Outcome& outcome, const Scheme& scheme, const StepTimes& times,
               const StepEnd& end);
  /// Worker 0 logs the aggregate, at first and when it changes, as after the loss of a worker.
  void aggregate(const std::string& aggregate);

  void log(const LoggedRound& round);
  void flush() { log_.flush(); }

  /// The status after the last step.
  wire::Heartbeat last();

 private:
  void read_traffic();
  wire::Heartbeat pull();

  World& world_;
  MemberLink& link_;
  Options options_;
  LenientLines log_;
  StatusBoard status_;
  std::string aggregate_;
  Duration held_{};

  // Since the last line of the log.
  PassResult classified_{};
  Histogram staleness_{};
};

}  // namespace syncopate
