#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "pacer/pacer_client.hpp"
#include "telemetry/lenient_lines.hpp"

namespace syncopate {

/// The folder of a run, and the files in it.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  /// Creates the folder and its subfolders; that of checkpoints only if `has_checkpoints`.
  /// Errors: ConfigError if it already holds a run; DataError if it cannot be created.
  void create(bool has_checkpoints = true) const;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path summary() const { return root_ / "summary.json"; }
  std::filesystem::path evaluations() const { return root_ / "evaluations.jsonl"; }
  std::filesystem::path pace_log() const { return root_ / "pacer.jsonl"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path worker_log(Rank rank) const;
  /// The workers that have a log, in order; a worker that was lost may have none.
  /// Errors: DataError if the folder cannot be read.
  std::vector<Rank> logged_workers() const;
  /// The event file of a process that began at `wall_time`, in seconds since 1970.
  std::filesystem::path events(double wall_time) const;
  std::filesystem::path trace() const { return root_ / "trace.json.gz"; }
  /// The spans that processes of the job write, from which the trace is made.
  std::filesystem::path spans() const { return root_ / "spans"; }
  std::filesystem::path spans_of(std::string_view role, Rank rank) const;
  std::filesystem::path spans_of_coordinator() const { return spans() / "coordinator.jsonl"; }

 private:
  std::filesystem::path root_;
};

/// Drops the lines of a log of JSON objects whose `round` is above `round`: a resumed run writes
/// them again. Also drops lines that cannot be read, as a crash may leave one at the end.
void keep_rounds_up_to(const std::filesystem::path& log, std::uint64_t round);

/// Logs each decision of the pacer, and what the worker then did: one line per decision, written
/// when the worker's round ends.
///
///     {"worker", "round", "seconds", "steps_before", "planned_steps", "step_samples", "reason",
///      "taken_steps", "round_samples"}
///
/// `seconds`: since the job began; `steps_before`: the local steps of the round that the worker had
/// reported; `planned_steps`: the number of steps after which it synchronizes, null if this was not
/// decided; `step_samples`: samples of each of its next steps; `taken_steps` and `round_samples`:
/// the worker's steps and samples in the whole round, null for a round that was not synchronized.
///
/// Thread: one at a time.
class PaceLog {
 public:
  /// `report`: as for `LenientLines`.
  PaceLog(const std::filesystem::path& path, JsonLines::Mode mode, LenientLines::Report report)
      : lines_(path, mode, std::move(report)) {}

  void decided(const Pace& pace, Duration moment);
  /// Order: before the decisions that follow from this step.
  void stepped(Rank worker, const StepReport& report);
  void flush() { lines_.flush(); }
  /// Writes the decisions of rounds that have not ended. Called last.
  void finish();

 private:
  struct Decision {
    Pace pace;
    Duration moment{};
    std::uint64_t steps_before = 0;
  };
  /// The current round of a worker.
  struct Round {
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    std::vector<Decision> decisions{};
  };

  void write(const Round& round, bool synchronized);

  LenientLines lines_;
  std::map<Rank, Round> rounds_;
};

}  // namespace syncopate
