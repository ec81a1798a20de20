// Goal:   the status event has every metric of the table, for the job and for each worker; a lost
//         model is reported once, and again at the end; recording continues to the end of the job
//         if a log cannot be written or the evaluator is absent.
// Method: a recorder receives the reports of a coordinator; its folder is missing or full.

#include "report/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
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

/// A recorder of a job without members, in a new folder.
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
      "is that of round 8: continue from it by --resume with a lower --learning-rate";
  ASSERT_EQ(recording.events.size(), 1U);
  EXPECT_EQ(recording.events.front(), (Json{{"event", "note"}, {"text", text}}));
  EXPECT_EQ(recording.summary().at("lost_model"),
            (Json{{"round", 12}, {"checkpoint", "run/checkpoints/a"}, {"text", text}}));
}

TEST(Recorder, AModelThatIsFiniteAgainIsNotLost) {
  Recording recording;
  recording.recorder.checkpoint_written(kept_at(8, 12));
  wire::Checkpoint written;
  written.set_path((recording.folder.checkpoints() / "b").string());
  written.set_round(16);
  recording.recorder.checkpoint_written(written);
  EXPECT_EQ(recording.events.back().at("event"), "checkpoint");
  EXPECT_TRUE(recording.summary().at("lost_model").is_null());
}

/// A job of one worker whose recorder's events the test can read.
class RecordedJob {
 public:
  explicit RecordedJob(const std::string& folder)
      : recorder_(clock_, {.config = config(),
                           .folder = RunFolder(folder),
                           .emit = [this](const Json& event) { events.push_back(event); },
                           .interrupted = [] { return false; }}) {
    View view;
    view.members.resize(2);
    view.members[1].role = Role::evaluator;
    recorder_.view_installed(view);
    recorder_.heartbeat_received(view.members[0], {});
  }

  Recorder& recorder() { return recorder_; }

  std::vector<std::string> notes() const {
    std::vector<std::string> texts;
    for (const Json& event : events) {
      if (event.at("event") == "note") {
        texts.push_back(event.at("text"));
      }
    }
    return texts;
  }

  std::vector<Json> events;

 private:
  static TrainConfig config() {
    TrainConfig config;
    config.scheme = "ssgd";
    config.network = &network_named("mlp");
    return config;
  }

  StandingClock clock_;
  Recorder recorder_;
};

TEST(Recorder, GoesOnWhereNoLogCanBeWritten) {
  RecordedJob job("/nowhere/run");
  for (const double accuracy : {0.25, 0.5}) {
    wire::Evaluation evaluation;
    evaluation.set_accuracy(accuracy);
    job.recorder().evaluated(evaluation);
    job.recorder().pace_decided({.worker = Rank{0}, .round = 1, .sync_after = {}}, {});
  }
  job.recorder().finish();
  EXPECT_THAT(job.notes(),
              testing::ElementsAre(testing::HasSubstr("cannot open /nowhere/run/evaluations.jsonl"),
                                   testing::HasSubstr("cannot open /nowhere/run/pacer.jsonl"),
                                   testing::HasSubstr("cannot create /nowhere/run/summary.json")));
  const Json& finished = job.events.back();
  EXPECT_EQ(finished.at("event"), "finished");
  EXPECT_EQ(finished.at("summary").at("accuracy"), 0.5);
  EXPECT_EQ(finished.at("summary").at("evaluations").size(), 2U);
}

TEST(Recorder, SaysInANoteAndInTheSummaryThatTheEvaluatorIsGone) {
  RecordedJob job("/nowhere/run");
  Member evaluator;
  evaluator.role = Role::evaluator;
  job.recorder().dropped(evaluator, "the evaluator (pid 7 on c3) died");
  job.recorder().finish();
  EXPECT_EQ(
      job.notes().at(0),
      "the evaluator (pid 7 on c3) died; the job goes on without it, and without evaluations");
  const Json summary = job.events.back().at("summary");
  EXPECT_EQ(summary.at("evaluator_dropped_because"), "the evaluator (pid 7 on c3) died");
  EXPECT_EQ(summary.at("evaluator_restarts"), 0);
  EXPECT_TRUE(summary.at("workers").at(0).at("dropped_because").is_null()) << "it is no worker";
}

TEST(Recorder, CountsTheEvaluatorsRestartsAndSaysWhetherTheLastOneStayed) {
  RecordedJob job("/nowhere/run");
  const auto summary = [&] {
    job.recorder().finish();
    return job.events.back().at("summary");
  };
  Member evaluator;
  evaluator.role = Role::evaluator;
  evaluator.host = "c3";
  evaluator.pid = 8;
  job.recorder().dropped(evaluator, "it died");
  job.recorder().replaced(evaluator);
  EXPECT_EQ(job.notes().back(), "the evaluator runs again (pid 8 on c3)");
  EXPECT_TRUE(summary().at("evaluator_dropped_because").is_null());
  EXPECT_EQ(summary().at("evaluator_restarts"), 1);
  job.recorder().dropped(evaluator, "it died again");
  EXPECT_EQ(summary().at("evaluator_dropped_because"), "it died again");
  EXPECT_EQ(summary().at("evaluator_restarts"), 1);
}

TEST(Recorder, NamesOnceTheFolderOfCheckpointsThatItDoesNotOwn) {
  RecordedJob job("/runs/mine");
  for (const char* path :
       {"/runs/mine/checkpoints/a", "/else/checkpoints/b", "/else/checkpoints/c"}) {
    wire::Checkpoint checkpoint;
    checkpoint.set_path(path);
    job.recorder().checkpoint_written(checkpoint);
  }
  EXPECT_THAT(job.notes(), testing::ElementsAre(testing::AllOf(
                               testing::HasSubstr("checkpoints go to /else/checkpoints"),
                               testing::HasSubstr("--run-dir /runs/mine"))));
}

}  // namespace
}  // namespace syncopate
