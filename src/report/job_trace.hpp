#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "membership/coordinator.hpp"
#include "pacer/pacer_control.hpp"
#include "report/run_folder.hpp"
#include "report/scoreboard.hpp"
#include "runtime/clock_offset.hpp"
#include "telemetry/metrics.hpp"
#include "telemetry/span_log.hpp"
#include "telemetry/thinning.hpp"

namespace syncopate {

/// The coordinator's part of a trace: instants for changes of members, decisions of the pacer and
/// evaluations; counters of the job; and the offset of each member's clock.
///
/// Thread: one at a time.
class JobTrace {
 public:
  /// Removes the spans of an earlier session from `folder`. `clock`: that of the job's world.
  JobTrace(const Clock& clock, const RunFolder& folder, LenientLines::Report report);

  void began(const View& view, bool resumed);
  void heartbeat_came(const Member& member, const wire::Heartbeat& heartbeat);
  /// `job`: the metrics of the member that keeps the model.
  void progressed(const MetricValues& job, double traffic_bytes);
  void decided(const Pace& pace);
  void evaluated(const EvaluationResult& result);
  void checkpoint_written(std::uint64_t round);
  void left(const Member& member);
  void dropped(const Member& member, const std::string& reason);
  void replaced(const Member& member);
  void flush() { log_.flush(); }

 private:
  using Json = SpanLog::Json;

  void member_changed(const Member& member, const std::string& change, const Json& args);
  void instant(std::string_view thread, const std::string& name, const Json& args);

  const Clock& clock_;
  SpanLog log_;
  std::map<NodeId, ClockOffset> offsets_;
  std::map<NodeId, Duration> written_skews_;
  TimePoint next_counters_{};
  Thinning counters_;
  Thinning decisions_;
};

}  // namespace syncopate
