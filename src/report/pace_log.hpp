#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "base/ids.hpp"
#include "pacer/pacer_client.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate {

/// Writes down each decision of the pacer beside what the worker then did: one line a decision, written
/// when the worker's round ends.
///
///     {"worker", "round", "seconds", "steps_before", "planned_steps", "step_samples", "reason",
///      "taken_steps", "round_samples"}
///
/// `seconds`: since the job began; `steps_before`: local steps of the round that the worker had reported;
/// `planned_steps`: after how many it synchronizes, null where that was not decided; `step_samples`: of its
/// next steps; `taken_steps` and `round_samples`: what the worker then did in the round, null for a round
/// that was not synchronized.
///
/// Thread: one at a time.
class PaceLog {
 public:
  /// Errors: DataError, when the file cannot be opened.
  PaceLog(const std::filesystem::path& path, JsonLines::Mode mode) : lines_(path, mode) {}

  void decided(const Pace& pace, Duration moment);
  /// Order: before what was decided because of this step. Errors: DataError, as `finish` and `flush`.
  void stepped(Rank worker, const StepReport& report);
  void flush() { lines_.flush(); }
  /// Writes the decisions of rounds that have not ended. The last call.
  void finish();

 private:
  struct Decision {
    Pace pace;
    Duration moment{};
    std::uint64_t steps_before = 0;
  };
  /// A worker in the round that its step in hand belongs to.
  struct Round {
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    std::vector<Decision> decisions{};
  };

  void write(const Round& round, bool synchronized);

  JsonLines lines_;
  std::map<Rank, Round> rounds_;
};

}  // namespace syncopate
