#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/machine.hpp"
#include "base/version.hpp"
#include "base/whole.hpp"
#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// `buckets` holds pairs: the least value of a bucket, and the number of values in it.
Json with_buckets(const Histogram& histogram) {
  Json buckets = Json::array();
  for (const Histogram::Bucket& bucket : histogram.parts().buckets) {
    buckets.push_back({bucket.least, bucket.count});
  }
  return {{"median", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"max", histogram.max()},
          {"mean", histogram.mean()},
          {"buckets", std::move(buckets)}};
}

/// Null for a worker that has compressed nothing.
Json compression_of(const MetricValues& worker) {
  const auto after = whole_of(worker[Metric::compressed_bytes]);
  if (after == 0) {
    return nullptr;
  }
  const auto before = whole_of(worker[Metric::compressed_values]) * sizeof(float);
  return {{"bytes_before", before},
          {"bytes_after", after},
          {"ratio", ratio(static_cast<double>(before), static_cast<double>(after))},
          {"relative_error", worker[Metric::compression_error]}};
}

Json summary_of_worker(const Member& member, const MemberStatuses& members,
                       const MetricValues& metrics) {
  const auto reason = members.dropped.find(member.rank);
  Json summary{{"rank", member.rank.value}, {"device", member.device}};
  write_metrics(summary, &MetricNames::worker, metrics);
  summary["compression"] = compression_of(metrics);
  summary["dropped_because"] =
      reason == members.dropped.end() ? Json(nullptr) : Json(reason->second);
  summary["staleness"] = with_buckets(from_wire(members.workers.at(member.rank).staleness()));
  return summary;
}

Json summary_of_server(const Member& member, const wire::Heartbeat& status,
                       const MetricValues& metrics) {
  const Histogram queue = from_wire(status.queue_length());
  Json summary{{"shard", member.rank.value}};
  write_metrics(summary, &MetricNames::server, metrics);
  summary["queue_length"] = {{"mean", queue.mean()}, {"max", queue.max()}};
  return summary;
}

/// The members of a job, in JSON and as values to be combined.
struct Members {
  std::vector<MetricValues> metrics{};  ///< of workers, then of servers
  double stand_alone = 0;               ///< Σ over workers
  double session_samples = 0;           ///< Σ over workers
  Histogram staleness{};
  Json workers = Json::array();
  Json servers = Json::array();
};

Members members_of(const RunResult& result) {
  Members members;
  for (const Member& member : result.view.workers()) {
    const wire::Heartbeat& status = result.members.workers.at(member.rank);
    const MetricValues& worker = members.metrics.emplace_back(metrics_in(status, result.metrics));
    members.stand_alone += worker[Metric::stand_alone_throughput];
    members.session_samples += worker[Metric::samples];
    members.staleness.merge(from_wire(status.staleness()));
    members.workers.push_back(summary_of_worker(member, result.members, worker));
  }
  for (const Member& member : result.view.of(Role::server)) {
    const auto status = result.members.servers.find(member.rank);
    if (status != result.members.servers.end()) {
      const MetricValues& server =
          members.metrics.emplace_back(metrics_in(status->second, result.metrics));
      members.servers.push_back(summary_of_server(member, status->second, server));
    }
  }
  return members;
}

/// The samples per second that entered the model / those of all devices by themselves. Samples of
/// dropped gradients were computed, but did not enter the model: only a server that keeps the model
/// knows their number.
double cluster_efficiency(const RunResult& result, const Members& members,
                          const MetricValues& keeper) {
  const bool server_knows = server_keeps_model(result.config) && keeper[Metric::samples] > 0;
  const double entered = server_knows ? keeper[Metric::samples] : members.session_samples;
  return ratio(ratio(entered, keeper[Metric::session_seconds]), members.stand_alone);
}

Json evaluations_of(const Scoreboard& scoreboard) {
  Json evaluations = Json::array();
  for (const EvaluationResult& evaluation : scoreboard.results()) {
    evaluations.push_back(to_json(evaluation));
  }
  return evaluations;
}

Json to_json(const LostModel& lost) {
  return {{"round", lost.round},
          {"checkpoint", lost.checkpoint.empty() ? Json(nullptr) : Json(lost.checkpoint)},
          {"text", lost.to_string()}};
}

}  // namespace

std::string LostModel::to_string() const {
  const std::string what =
      fmt::format("the parameters at round {} are not finite, so no checkpoint is written", round);
  return checkpoint.empty()
             ? what
             : fmt::format(
                   "{}; the last finite one is that of round {}: continue from it by --resume "
                   "with a lower --learning-rate",
                   what, checkpoint_round);
}

Json make_summary(const RunResult& result) {
  const MetricValues keeper = metrics_in(result.job, result.metrics);
  Members members = members_of(result);
  const Scoreboard& scoreboard = result.scoreboard;
  const std::string& aggregate = result.job.aggregate();
  Json summary{{"version", version},
               {"machine", machine_text()},
               {"scheme", result.config.scheme},
               {"network", result.config.network->name},
               {"data", result.config.data},
               {"seed", result.config.seed},
               {"virtual_time", result.config.virtual_time},
               {"learning_rate", or_null(result.config.learning_rate)},
               {"run_dir", result.folder.root().string()},
               {"ended_because", result.ended_because},
               {"accuracy", or_null(scoreboard.last_accuracy())},
               {"best_accuracy", or_null(scoreboard.best_accuracy())},
               {"target_accuracy", or_null(result.config.target_accuracy)},
               {"time_to_target_seconds", or_null(scoreboard.time_to_target_seconds())}};
  write_job_metrics(summary, &MetricNames::summary, members.metrics, keeper);
  summary["cluster_efficiency"] = cluster_efficiency(result, members, keeper);
  summary["aggregate"] = aggregate.empty() ? Json(nullptr) : Json(aggregate);
  summary["compress"] = to_string(result.config.compress);
  summary["staleness"] = with_buckets(members.staleness);
  summary["workers"] = std::move(members.workers);
  summary["servers"] = std::move(members.servers);
  summary["lost_model"] = result.lost_model ? to_json(*result.lost_model) : Json(nullptr);
  const auto& evaluator_dropped = result.members.evaluator_dropped_because;
  summary["evaluator_dropped_because"] =
      evaluator_dropped ? Json(*evaluator_dropped) : Json(nullptr);
  summary["evaluator_restarts"] = result.members.evaluator_restarts;
  summary["evaluations"] = evaluations_of(scoreboard);
  return summary;
}

}  // namespace syncopate
