// Goal:   a summary counts as traffic what was sent for training, neither snapshots nor what went through
//         shared memory, and measures a cluster by the speeds of its devices by themselves.
// Method: what two workers and a server said last, made up; closed values.

#include "report/summary.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// 100 s in which the device computed for half the time.
wire::Heartbeat heard_of(std::uint64_t sent, std::uint64_t snapshots, std::uint64_t handed_over) {
  wire::Heartbeat heartbeat;
  heartbeat.set_session_samples(1000);
  heartbeat.set_session_seconds(100);
  heartbeat.set_compute_seconds(50);
  heartbeat.set_bytes_sent(sent);
  heartbeat.set_evaluation_bytes(snapshots);
  heartbeat.set_bytes_handed_over(handed_over);
  return heartbeat;
}

Json summary_of(const MembersSaid& members) {
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
                       .ended_because = "every epoch is done"});
}

TEST(Summary, CountsSnapshotsAndSharedMemoryApartFromTraffic) {
  const Json summary = summary_of(
      {.workers = {{Rank{0}, heard_of(7000, 5000, 300)}, {Rank{1}, heard_of(1000, 0, 400)}},
       .servers = {{Rank{0}, heard_of(900, 600, 50)}},
       .dropped = {}});
  EXPECT_EQ(summary.at("traffic_bytes"), 2000 + 1000 + 300);
  EXPECT_EQ(summary.at("local_bytes"), 300 + 400 + 50);
  EXPECT_EQ(summary.at("workers")[0].at("traffic_bytes"), 2000);
  EXPECT_EQ(summary.at("workers")[0].at("evaluation_bytes"), 5000);
  EXPECT_EQ(summary.at("workers")[0].at("local_bytes"), 300);
  EXPECT_EQ(summary.at("servers")[0].at("traffic_bytes"), 300);
}

/// The cluster trains on 20 samples a second; its devices by themselves on 60 in whole batches, and on 40 in steps
/// such as they took.
TEST(Summary, MeasuresAClusterByItsDevicesInWholeBatches) {
  MembersSaid members{.workers = {{Rank{0}, heard_of(0, 0, 0)}, {Rank{1}, heard_of(0, 0, 0)}},
                      .servers = {},
                      .dropped = {}};
  EXPECT_DOUBLE_EQ(summary_of(members).at("cluster_efficiency"), 0.5) << "nobody said";
  for (auto& [rank, heartbeat] : members.workers) {
    heartbeat.set_stand_alone_throughput(30);
  }
  const Json summary = summary_of(members);
  EXPECT_DOUBLE_EQ(summary.at("cluster_efficiency"), 1.0 / 3);
  EXPECT_EQ(summary.at("workers")[1].at("stand_alone_throughput"), 30);
}

}  // namespace
}  // namespace syncopate
