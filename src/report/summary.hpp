#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "job/spec/config.hpp"
#include "report/run_folder.hpp"
#include "report/scoreboard.hpp"
#include "runtime/job_view.hpp"

namespace syncopate {

/// What the members of a job last said of themselves.
struct MembersSaid {
  std::map<Rank, wire::Heartbeat> workers;
  std::map<Rank, wire::Heartbeat> servers;
  std::map<Rank, std::string> dropped;  ///< workers, and why the job went on without them
};

/// What a run came to.
struct RunResult {
  const TrainConfig& config;
  const RunFolder& folder;
  const View& view;
  const MembersSaid& members;
  const wire::Heartbeat& job;  ///< of the member that knows where the job stands
  const Scoreboard& scoreboard;
  std::string ended_because;
};

/// The content of `summary.json`; Seconds and bytes; ratios are of the training clock.
nlohmann::ordered_json make_summary(const RunResult& result);

/// Shares of a member's time, and of anything else; 0 of nothing.
double ratio(double part, double whole);
/// Seconds in which a device computed: data, forward, backward, local update, paced time.
double busy_seconds(const wire::Heartbeat& worker);
nlohmann::ordered_json to_json(const EvaluationResult& result);
/// What `to_json` made; a number that is not finite has become null. A line of an older run, without the time
/// that a test took and its statistics, is read, too.
EvaluationResult evaluation_from(const nlohmann::ordered_json& object);
nlohmann::ordered_json or_null(std::optional<double> value);

}  // namespace syncopate
