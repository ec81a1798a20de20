// Goal:   the status event has every metric of the table, of the job and of each worker.
// Method: a recorder receives a worker's heartbeat with one more metric than the table has.

#include "report/recorder.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = Recorder::Json;

class StandingClock : public Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::seconds(1)); }
};

TEST(Recorder, EmitsEveryMetricOfTheTable) {
  std::vector<MetricSpec> table(all_metrics().begin(), all_metrics().end());
  table.push_back(
      {.in_job = InJob::keeper, .names = {.status = "toy", .worker_status = "toy_of_worker"}});
  const Metric toy{table.size() - 1};
  StatusBoard board(table);
  board.update([&](MemberStatus& status) {
    status.phase = "backward";
    status.metrics.set(toy, std::uint64_t{5});
  });
  const StandingClock clock;
  std::vector<Json> events;
  TrainConfig config;
  config.scheme = "ssgd";
  Recorder recorder(clock, {.config = config,
                            .folder = RunFolder("run"),
                            .emit = [&](const Json& event) { events.push_back(event); },
                            .interrupted = [] { return false; },
                            .metrics = table});
  Member worker;
  worker.role = Role::worker;
  worker.rank = Rank{0};
  recorder.heartbeat_received(worker, board.message());
  ASSERT_EQ(events.size(), 1U);
  const Json& status = events.front();
  for (const MetricSpec& spec : table) {
    const auto expect = [](const Json& object, std::string_view name) {
      EXPECT_TRUE(name.empty() || object.contains(name)) << name;
    };
    expect(status, spec.names.status);
    expect(status.at("workers")[0], spec.names.worker_status);
  }
  EXPECT_EQ(status.at("toy"), 5);
  EXPECT_EQ(status.at("workers")[0].at("toy_of_worker"), 5);
  EXPECT_EQ(status.at("workers")[0].at("phase"), "backward");
}

}  // namespace
}  // namespace syncopate
