#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/run_folder.hpp"
#include "report/scoreboard.hpp"
#include "runtime/job_view.hpp"
#include "spec/config.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate {

/// A model whose parameters have become infinite or NaN.
struct LostModel {
  std::uint64_t round = 0;             ///< of the first checkpoint that was not written
  std::string checkpoint{};            ///< the newest one that is kept
  std::uint64_t checkpoint_round = 0;  ///< its round

  /// Describes what happened and what to do.
  std::string to_string() const;
};

/// The last status of each member of a job.
struct MemberStatuses {
  std::map<Rank, wire::Heartbeat> workers;
  std::map<Rank, wire::Heartbeat> servers;
  std::map<Rank, std::string> dropped;  ///< workers, and why the job continued without them
  std::optional<std::string> evaluator_dropped_because{};
  std::uint64_t evaluator_restarts = 0;
};

/// The result of a run.
struct RunResult {
  const TrainConfig& config;
  const RunFolder& folder;
  const View& view;
  const MemberStatuses& members;
  const wire::Heartbeat& job;  ///< of the member that keeps the model
  const Scoreboard& scoreboard;
  std::string ended_because;
  MetricTable metrics = all_metrics();
  std::optional<LostModel> lost_model = {};  ///< empty if the last checkpoint was written
};

/// The content of `summary.json`. Times are in seconds of the training clock.
nlohmann::ordered_json make_summary(const RunResult& result);

}  // namespace syncopate
