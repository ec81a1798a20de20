// Goal:   every kind of event of `report/events.hpp` is read as documented, and other lines are
//         refused.
// Method: a line of each kind; lines that are damaged.
#include "report/events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.hpp"

namespace syncopate::events {
namespace {

template <class Kind>
Kind read(std::string_view line) {
  return std::get<Kind>(parse_event(line));
}

TEST(ParseEventTest, ReadsTheStart) {
  const auto started = read<Started>(
      R"({"event": "started", "run_dir": "runs/x", "scheme": "ssgd", "network": "mlp",
          "data": "mnist", "epochs": 2.5, "target_accuracy": null, "virtual_time": true,
          "workers": [{"rank": 1, "device": "cpu", "host": "h", "pid": 7}]})");
  EXPECT_EQ(started.run_dir, "runs/x");
  EXPECT_EQ(started.scheme + started.network + started.data, "ssgdmlpmnist");
  EXPECT_EQ(started.epochs, 2.5);
  EXPECT_FALSE(started.target_accuracy);
  EXPECT_TRUE(started.virtual_time);
  ASSERT_EQ(started.workers.size(), 1u);
  EXPECT_EQ(started.workers[0].rank, 1u);
  EXPECT_EQ(started.workers[0].device, "cpu");
  EXPECT_EQ(started.workers[0].host, "h");
  EXPECT_EQ(started.workers[0].pid, 7);
}

TEST(ParseEventTest, ReadsAStatusWithALossThatIsNoNumber) {
  const auto status = read<Status>(
      R"({"event": "status", "training_seconds": 1.5, "samples": 640, "epoch": 0.1, "round": 10,
          "loss": null, "throughput": 426.7, "unknown": 1,
          "workers": [{"rank": 0, "samples": 320, "steps": 5, "round": 10, "phase": "data",
                       "compute": 0.5, "communicate": 0.3, "wait": 0.2,
                       "samples_per_second": 213.3}]})");
  EXPECT_EQ(status.training_seconds, 1.5);
  EXPECT_EQ(status.samples, 640u);
  EXPECT_TRUE(std::isnan(status.loss));
  ASSERT_EQ(status.workers.size(), 1u);
  EXPECT_EQ(status.workers[0].steps, 5u);
  EXPECT_EQ(status.workers[0].phase, "data");
  EXPECT_EQ(status.workers[0].wait, 0.2);
}

TEST(ParseEventTest, ReadsWhatThePacerThinksAndSays) {
  const auto status = read<Status>(
      R"({"event": "status", "training_seconds": 1.5, "samples": 640, "epoch": 0.1, "round": 10,
          "loss": 1, "throughput": 426.7, "round_seconds": 0.25,
          "workers": [{"rank": 0, "samples": 320, "steps": 5, "round": 10, "phase": "data",
                       "compute": 0.5, "communicate": 0.3, "wait": 0.2, "samples_per_second": 213.3,
                       "pace": {"step_seconds": 0.03, "step_samples": 64, "steps": 7,
                                "meet_after": 8, "reason": "slowest", "overdue": true}},
                      {"rank": 1, "samples": 320, "steps": 5, "round": 10, "phase": "data",
                       "compute": 0.5, "communicate": 0.3, "wait": 0.2, "samples_per_second": 213.3,
                       "pace": {"step_seconds": 0, "step_samples": 4, "steps": 0,
                                "meet_after": null, "reason": null, "overdue": false}}]})");
  EXPECT_EQ(status.round_seconds, 0.25);
  ASSERT_EQ(status.workers.size(), 2u);
  const auto& pace = status.workers[0].pace.value();
  EXPECT_EQ(pace.step_seconds, 0.03);
  EXPECT_EQ(pace.step_samples, 64u);
  EXPECT_EQ(pace.steps, 7u);
  EXPECT_EQ(pace.meet_after, 8u);
  EXPECT_EQ(pace.reason, "slowest");
  EXPECT_TRUE(pace.overdue);
  EXPECT_EQ(status.workers[1].pace.value().meet_after, std::nullopt);
  EXPECT_EQ(status.workers[1].pace.value().reason, "");
}

TEST(ParseEventTest, ReadsTheOthers) {
  const auto evaluation = read<EvaluationResult>(
      R"({"event": "evaluation", "round": 3, "samples": 9, "epoch": 1, "training_seconds": 2,
          "accuracy": 0.5, "loss": 0.7})");
  EXPECT_EQ(evaluation.round, 3u);
  EXPECT_EQ(evaluation.accuracy, 0.5);
  EXPECT_EQ(read<Checkpoint>(R"({"event": "checkpoint", "path": "p", "round": 3})").path, "p");
  EXPECT_EQ(read<Note>(R"({"event": "note", "text": "t"})").text, "t");
  const auto finished =
      read<Finished>(R"({"event": "finished", "reason": "r", "summary": {"seed": 1}})");
  EXPECT_EQ(finished.reason, "r");
  EXPECT_EQ(finished.summary.at("seed"), 1);
  EXPECT_EQ(read<Failed>(R"({"event": "failed", "kind": "k", "error": "e"})").error, "e");
}

TEST(ParseEventTest, RefusesWhatIsNoEvent) {
  for (const char* line : {"", "{", "[]", "1", "{}", R"({"event": "other"})", R"({"event": 1})",
                           R"({"event": "note"})", R"({"event": "note", "text": 1})"}) {
    EXPECT_THROW(parse_event(line), ProtocolError) << line;
  }
}

}  // namespace
}  // namespace syncopate::events
