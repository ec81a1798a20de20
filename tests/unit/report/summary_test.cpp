// Goal:   a summary counts as traffic the bytes of training, without snapshots and shared memory,
//         compares the speed of a cluster with the sum of the speeds of its single devices, and
//         has every metric of the table.
// Method: invented last statuses of two workers and a server; fixed expected values.

#include "report/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the metrics of 100 s in which the device computed for half the time.
MetricValues metrics_of(std::uint64_t sent, std::uint64_t snapshots, std::uint64_t local,
                        MetricTable table = all_metrics()) {
  MetricValues metrics(table);
  metrics.set(Metric::samples, std::uint64_t{1000});
  metrics.set(Metric::session_seconds, 100.0);
  metrics.set(Metric::compute_seconds, 50.0);
  metrics.set(Metric::bytes_sent, sent);
  metrics.set(Metric::evaluation_bytes, snapshots);
  metrics.set(Metric::local_bytes, local);
  return metrics;
}

wire::Heartbeat heartbeat_of(const MetricValues& metrics) {
  MemberStatus status;
  status.metrics = metrics;
  return to_wire(status);
}

wire::Heartbeat heartbeat_of(std::uint64_t sent, std::uint64_t snapshots, std::uint64_t local) {
  return heartbeat_of(metrics_of(sent, snapshots, local));
}

Json summary_of(const MemberStatuses& members, MetricTable metrics = all_metrics()) {
  View view;
  const auto add = [&](Role role, Rank rank) {
    Member& member = view.members.emplace_back();
    member.role = role;
    member.rank = rank;
  };
  for (const auto& [rank, heartbeat] : members.workers) {
    add(Role::worker, rank);
  }
  for (const auto& [rank, heartbeat] : members.servers) {
    add(Role::server, rank);
  }
  const TrainConfig config;
  const RunFolder folder("run");
  return make_summary({.config = config,
                       .folder = folder,
                       .view = view,
                       .members = members,
                       .job = members.workers.at(Rank{0}),
                       .scoreboard = Scoreboard({}),
                       .ended_because = "every epoch is done",
                       .metrics = metrics});
}

TEST(Summary, CountsSnapshotsAndSharedMemoryApartFromTraffic) {
  const Json summary = summary_of(
      {.workers = {{Rank{0}, heartbeat_of(7000, 5000, 300)}, {Rank{1}, heartbeat_of(1000, 0, 400)}},
       .servers = {{Rank{0}, heartbeat_of(900, 600, 50)}},
       .dropped = {}});
  EXPECT_EQ(summary.at("traffic_bytes"), 2000 + 1000 + 300);
  EXPECT_EQ(summary.at("local_bytes"), 300 + 400 + 50);
  EXPECT_EQ(summary.at("exchanged_bytes"), 3300 + 750);
  EXPECT_EQ(summary.at("workers")[0].at("traffic_bytes"), 2000);
  EXPECT_EQ(summary.at("workers")[0].at("evaluation_bytes"), 5000);
  EXPECT_EQ(summary.at("workers")[0].at("local_bytes"), 300);
  EXPECT_EQ(summary.at("servers")[0].at("traffic_bytes"), 300);
  EXPECT_EQ(summary.at("servers")[0].at("exchanged_bytes"), 300 + 50);
}

/// The cluster trains on 20 samples a second; its single devices together reach 60 in whole
/// batches, and 40 in steps of the size that they took.
TEST(Summary, MeasuresAClusterByItsDevicesInWholeBatches) {
  MemberStatuses members{
      .workers = {{Rank{0}, heartbeat_of(0, 0, 0)}, {Rank{1}, heartbeat_of(0, 0, 0)}},
      .servers = {},
      .dropped = {}};
  EXPECT_DOUBLE_EQ(summary_of(members).at("cluster_efficiency"), 0.5) << "nobody said";
  for (auto& [rank, heartbeat] : members.workers) {
    MetricValues metrics = metrics_of(0, 0, 0);
    metrics.set(Metric::whole_batch_throughput, 30.0);
    heartbeat = heartbeat_of(metrics);
  }
  const Json summary = summary_of(members);
  EXPECT_DOUBLE_EQ(summary.at("cluster_efficiency"), 1.0 / 3);
  EXPECT_EQ(summary.at("workers")[1].at("stand_alone_throughput"), 30);
}

/// A server that only reduces keeps no model, so the metrics of the job are those of worker 0.
TEST(Summary, CountsTheSamplesOfAllWorkersWhereAServerOnlyReduces) {
  const Json summary =
      summary_of({.workers = {{Rank{0}, heartbeat_of(0, 0, 0)}, {Rank{1}, heartbeat_of(0, 0, 0)}},
                  .servers = {{Rank{0}, heartbeat_of(0, 0, 0)}},
                  .dropped = {}});
  EXPECT_DOUBLE_EQ(summary.at("cluster_efficiency"), 0.5);
}

TEST(Summary, HasEveryMetricOfTheTable) {
  std::vector<MetricSpec> table(all_metrics().begin(), all_metrics().end());
  table.push_back(
      {.in_job = InJob::sum,
       .names = {.summary = "toy", .worker = "toy_of_worker", .server = "toy_of_server"}});
  MetricValues metrics = metrics_of(0, 0, 0, table);
  metrics.set(Metric{table.size() - 1}, std::uint64_t{5});
  const wire::Heartbeat heartbeat = heartbeat_of(metrics);
  const Json summary = summary_of({.workers = {{Rank{0}, heartbeat}, {Rank{1}, heartbeat}},
                                   .servers = {{Rank{0}, heartbeat}},
                                   .dropped = {}},
                                  table);
  for (const MetricSpec& spec : table) {
    const auto expect = [](const Json& object, std::string_view name) {
      EXPECT_TRUE(name.empty() || object.contains(name)) << name;
    };
    expect(summary, spec.names.summary);
    expect(summary.at("workers")[1], spec.names.worker);
    expect(summary.at("servers")[0], spec.names.server);
  }
  EXPECT_EQ(summary.at("toy"), 15);
  EXPECT_EQ(summary.at("workers")[1].at("toy_of_worker"), 5);
}

}  // namespace
}  // namespace syncopate
