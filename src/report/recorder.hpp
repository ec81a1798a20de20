#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "membership/coordinator.hpp"
#include "pacer/pacer_control.hpp"
#include "report/job_trace.hpp"
#include "report/run_folder.hpp"
#include "report/scalar_log.hpp"
#include "report/summary.hpp"
#include "spec/config.hpp"
#include "telemetry/lenient_lines.hpp"

namespace syncopate {

/// The coordinator's record of a training job: it receives every status and event, emits events for
/// observers of the job (`report/events.hpp`), decides when the target is reached, and writes the
/// summary.
class Recorder : public JobObserver, public PaceObserver {
 public:
  using Json = nlohmann::ordered_json;

  struct Options {
    TrainConfig config;
    RunFolder folder;
    std::uint32_t cores = 1;  ///< of this machine, for the check of emulated devices
    bool resumed = false;
    std::function<void(const Json&)> emit;  ///< takes each event
    std::function<bool()> interrupted;      ///< true once the user asks to stop
    MetricTable metrics = all_metrics();
    /// Times the trace: the clock of the job's world. Null: neither a trace nor curves are written.
    const Clock* world = nullptr;
    double wall_time = 0;  ///< seconds since 1970 at which this process began
  };

  /// Status events are timed by `clock`; nothing else depends on it.
  Recorder(const Clock& clock, Options options);

  std::optional<std::string> objection(const std::map<NodeId, wire::Join>& joins) override;
  void refused(const std::string& reason) override;
  void awaiting(const std::string& absent) override;
  void noted(const std::string& text) override;
  void view_installed(const View& view) override;
  void heartbeat_received(const Member& member, const wire::Heartbeat& heartbeat) override;
  void evaluated(const wire::Evaluation& evaluation) override;
  void checkpoint_written(const wire::Checkpoint& checkpoint) override;
  void left(const Member& member, const wire::Leave& leave) override;
  void dropped(const Member& member, const std::string& reason) override;
  void replaced(const Member& evaluator) override;
  void paced(const PacerState& state) override;
  void pace_decided(const Pace& pace, Duration moment) override;
  void stepped(Rank worker, const StepReport& report) override;
  std::optional<std::string> reason_to_stop() override;
  bool end_is_urgent() override { return options_.interrupted(); }

  /// Writes `summary.json`, or reports why it cannot, and emits `finished`. Called after the last
  /// member has left.
  void finish();
  /// Emits `failed`.
  void fail(const std::exception& error);

 private:
  void warn(const std::string& text);
  void checkpoint_skipped(const wire::Checkpoint& kept);
  LenientLines::Report warning();
  void write_summary(const Json& summary);
  void expect_in_folder(const std::filesystem::path& checkpoint);
  PaceLog& pace_log();
  void emit_status();
  Json status_of_worker(Rank rank, const wire::Heartbeat& heartbeat) const;
  void note_down(const Member& member, const wire::Heartbeat& heartbeat);
  const wire::Heartbeat& keeper() const;
  bool keeps_model(const Member& member) const;
  double rounds() const;
  std::string ended_because() const;
  void open_trace();
  void note_progress();
  void write_trace();

  const Clock& clock_;
  Options options_;
  Scoreboard scoreboard_;
  std::optional<LenientLines> evaluations_;  ///< from the first evaluation on
  View view_;
  MemberStatuses members_;
  std::optional<PacerState> pace_;   ///< of a job whose workers are paced
  std::optional<PaceLog> pace_log_;  ///< of such a job, from the first step or decision on
  TimePoint next_status_{};
  std::optional<LostModel> lost_model_;  ///< since the last checkpoint
  bool warned_of_checkpoints_ = false;
  std::optional<JobTrace> trace_;
  std::optional<ScalarLog> curves_;
  std::optional<std::string> stop_reason_;  ///< why the coordinator asked to stop, if it did
};

}  // namespace syncopate
