// Goal:   the status event has every metric of the table, of the job and of each worker; a model
//         that is lost is named once, and at the end.
// Method: a recorder receives a worker's heartbeat with one more metric than the table has, and
//         reports of checkpoints.

#include "report/recorder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = Recorder::Json;

constexpr NetworkSpec small_network{.name = "small"};

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

/// A recorder of a job without members, in a folder of its own.
struct Recording {
  Recording() {
    std::filesystem::remove_all(folder.root());
    folder.create();
  }
  Json summary() {
    recorder.finish();
    return events.back().at("summary");
  }

  static TrainConfig config() {
    TrainConfig config;
    config.scheme = "ssgd";
    config.network = &small_network;
    return config;
  }

  RunFolder folder{std::filesystem::path(testing::TempDir()) / "syncopate-recorder"};
  StandingClock clock{};
  std::vector<Json> events{};
  Recorder recorder{clock,
                    {.config = config(),
                     .folder = folder,
                     .emit = [this](const Json& event) { events.push_back(event); },
                     .interrupted = [] { return false; }}};
};

wire::Checkpoint kept_at(std::uint64_t round, std::uint64_t skipped) {
  wire::Checkpoint kept;
  kept.set_path("run/checkpoints/a");
  kept.set_round(round);
  kept.set_skipped_round(skipped);
  return kept;
}

TEST(Recorder, SaysOnceThatTheModelIsLostAndInTheSummary) {
  Recording recording;
  for (const std::uint64_t round : {12, 16, 20}) {
    recording.recorder.checkpoint_written(kept_at(8, round));
  }
  const std::string text =
      "the parameters at round 12 are not finite, so no checkpoint is written; the last finite one "
      "is that of round 8: go on from it by --resume with a lower --learning-rate";
  ASSERT_EQ(recording.events.size(), 1U);
  EXPECT_EQ(recording.events.front(), (Json{{"event", "note"}, {"text", text}}));
  EXPECT_EQ(recording.summary().at("lost_model"),
            (Json{{"round", 12}, {"checkpoint", "run/checkpoints/a"}, {"text", text}}));
}

TEST(Recorder, AModelThatIsFiniteAgainIsNotLost) {
  Recording recording;
  recording.recorder.checkpoint_written(kept_at(8, 12));
  wire::Checkpoint written;
  written.set_round(16);
  recording.recorder.checkpoint_written(written);
  EXPECT_EQ(recording.events.back().at("event"), "checkpoint");
  EXPECT_TRUE(recording.summary().at("lost_model").is_null());
}

}  // namespace
}  // namespace syncopate
