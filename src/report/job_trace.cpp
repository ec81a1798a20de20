#include "report/job_trace.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/machine.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate {
namespace {

/// Entries until a trace gets sparser; see `Thinning`.
constexpr std::uint64_t many_counters = 2048;
constexpr std::uint64_t many_decisions = 4096;
constexpr Duration counters_every = std::chrono::milliseconds(200);

constexpr std::string_view members_thread = "members";
constexpr std::string_view pacer_thread = "pacer";
constexpr std::string_view evaluations_thread = "evaluations";

std::string_view word_for(Role role) {
  return role == Role::worker ? "worker" : role == Role::server ? "server" : "evaluator";
}

const RunFolder& without_spans(const RunFolder& folder) {
  std::error_code unheeded;  // a merge recognises spans of an earlier session by their clock
  std::filesystem::remove_all(folder.spans(), unheeded);
  return folder;
}

}  // namespace

JobTrace::JobTrace(const Clock& clock, const RunFolder& folder, LenientLines::Report report)
    : clock_(clock),
      log_(clock, without_spans(folder).spans_of_coordinator(),
           {{"process", "coordinator"}, {"machine", machine_identity()}}, std::move(report)),
      counters_(many_counters),
      decisions_(many_decisions) {}

void JobTrace::began(const View& view, bool resumed) {
  for (const Member& member : view.members) {
    member_changed(member, resumed ? "resumed" : "joined",
                   {{"host", member.host}, {"device", member.device}, {"pid", member.pid}});
  }
  log_.flush();
}

/// Writes the offset of the member's clock when it is first known, and when the estimate improves.
void JobTrace::heartbeat_came(const Member& member, const wire::Heartbeat& heartbeat) {
  ClockOffset& offset = offsets_[member.node];
  offset.heartbeat_came(heartbeat, clock_.now());
  if (!offset.estimate()) {
    return;
  }
  const auto [offset_of_member, skew] = *offset.estimate();
  const auto written = written_skews_.find(member.node);
  if (written == written_skews_.end() || skew < written->second * 9 / 10) {
    written_skews_[member.node] = skew;
    log_.line({{"clock_of", word_for(member.role)},
               {"rank", member.rank.value},
               {"offset", offset_of_member.count()},
               {"skew", skew.count()}});
  }
}

void JobTrace::progressed(const MetricValues& job, double traffic_bytes) {
  const TimePoint now = clock_.now();
  if (now < next_counters_) {
    return;
  }
  next_counters_ = now + counters_every;
  if (counters_.keeps_next()) {
    log_.counter("throughput", now, job[Metric::job_throughput]);
    if (job[Metric::job_samples] > 0 && !std::isnan(job[Metric::loss])) {  // else not known
      log_.counter("loss", now, job[Metric::loss]);
    }
    log_.counter("traffic bytes", now, traffic_bytes);
    counters_.wrote(1);
  }
}

void JobTrace::decided(const Pace& pace) {
  if (!decisions_.keeps_next()) {
    return;
  }
  decisions_.wrote(1);
  const std::string steps =
      pace.sync_after ? fmt::format("after {} steps", *pace.sync_after) : "not decided yet";
  instant(pacer_thread, fmt::format("worker {}: {}", pace.worker.value, steps),
          {{"worker", pace.worker.value},
           {"round", pace.round},
           {"planned_steps", pace.sync_after ? Json(*pace.sync_after) : Json(nullptr)},
           {"step_samples", pace.step_samples},
           {"period", pace.period},
           {"reason", words_for(pace.reason)}});
}

void JobTrace::evaluated(const EvaluationResult& result) {
  instant(evaluations_thread, "evaluation",
          {{"round", result.round},
           {"accuracy", result.accuracy},
           {"loss", result.loss},
           {"training_seconds", result.training_seconds},
           {"evaluation_seconds", result.evaluation_seconds}});
}

void JobTrace::checkpoint_written(std::uint64_t round) {
  instant(evaluations_thread, "checkpoint", {{"round", round}});
}

void JobTrace::left(const Member& member) {
  member_changed(member, "left", Json::object());
}

void JobTrace::dropped(const Member& member, const std::string& reason) {
  member_changed(member, "lost", {{"reason", reason}});
}

void JobTrace::replaced(const Member& member) {
  member_changed(member, "replaced", {{"pid", member.pid}, {"host", member.host}});
}

void JobTrace::member_changed(const Member& member, const std::string& change, const Json& args) {
  instant(members_thread, fmt::format("{} {}", name_of(member.role, member.rank), change), args);
}

void JobTrace::instant(std::string_view thread, const std::string& name, const Json& args) {
  log_.instant(thread, name, clock_.now(), args);
}

}  // namespace syncopate
