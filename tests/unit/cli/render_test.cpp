// Goal:   the view on a terminal is correct, fits the terminal, and depends only on the state.
// Method: whole views of small states; terminal sizes from absurd to wide, with every line
//         measured.
#include "cli/view/render.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Style ascii{.width = 80, .height = 24, .colour = false, .unicode = false};

JobState job_of(std::uint32_t workers) {
  JobState state;
  state.config.epochs = 5;
  state.started = events::Started{
      .run_dir = "runs/x", .scheme = "ssgd", .network = "lenet5", .data = "mnist", .epochs = 5};
  state.status = events::Status{.training_seconds = 90,
                                .samples = 90000,
                                .epoch = 1.5,
                                .round = 1406,
                                .loss = 0.25,
                                .throughput = 1000};
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    state.started->workers.push_back({rank, "cpu as slow", "host", 100});
    state.status->workers.push_back({.rank = rank,
                                     .samples = 45000,
                                     .steps = 703,
                                     .round = 1406,
                                     .phase = "backward",
                                     .compute = 0.5,
                                     .communicate = 0.25,
                                     .wait = 0.25,
                                     .samples_per_second = 1500.4});
  }
  state.apply(events::Status(*state.status));
  return state;
}

TEST(RenderLiveTest, SaysThatTimeIsVirtual) {
  JobState state = job_of(1);
  state.config.virtual_time = true;
  state.started->virtual_time = true;
  const auto lines = render_live(state, ascii);
  EXPECT_THAT(lines.front(), HasSubstr("ssgd: lenet5 on mnist, in virtual time, runs/x"));
  EXPECT_THAT(lines.back(), HasSubstr("virtual time 1:30   remaining 3:30"));
  EXPECT_THAT(started_line(*state.started), HasSubstr("1 worker, in virtual time, runs/x"));
}

TEST(RenderLiveTest, ShowsEveryWorkerAndTheJob) {
  JobState state = job_of(1);
  state.apply(EvaluationResult{.accuracy = 0.9});
  state.apply(EvaluationResult{.accuracy = 0.875});
  const auto lines = render_live(state, ascii);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], HasSubstr("ssgd: lenet5 on mnist, runs/x"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("worker  device"), HasSubstr("samples/s  time ")));
  EXPECT_EQ(lines[2],
            "     0  cpu as slow       1,500  ###################=========.........     1,406");
  EXPECT_THAT(lines[3], HasSubstr("epoch 1.50 of 5   1,000 samples/s   loss 0.2500   accuracy "
                                  "0.8750 (best 0.9"));
  EXPECT_THAT(lines[4],
              HasSubstr("elapsed 1:30   remaining 3:30   compute # communicate = wait ."));
}

TEST(RenderLiveTest, LeavesOutWhatProgramsDoNotSay) {
  JobState state = job_of(1);
  state.config.epochs = open_end;
  state.status->loss = std::numeric_limits<double>::quiet_NaN();
  state.has_had_loss = false;
  const auto lines = render_live(state, ascii);
  EXPECT_THAT(lines[3], testing::MatchesRegex("epoch 1.50   1,000 samples/s *"));
  EXPECT_THAT(lines[4], testing::MatchesRegex("elapsed 1:30   compute # communicate = wait . *"));
}

TEST(RenderLiveTest, ShowsALossThatIsNotANumberOnceThereWasOne) {
  JobState state = job_of(1);
  events::Status status = *state.status;
  status.loss = std::numeric_limits<double>::quiet_NaN();
  state.has_had_loss = false;  // as after a resume
  state.apply(status);
  EXPECT_THAT(render_live(state, ascii)[3], Not(HasSubstr("loss")));
  state.apply(*job_of(1).status);
  state.apply(status);
  EXPECT_THAT(render_live(state, ascii)[3], HasSubstr("loss nan"));
}

JobState paced_job(std::uint32_t workers) {
  JobState state = job_of(workers);
  state.status->round_seconds = 0.219;
  for (auto& worker : state.status->workers) {
    worker.pace = {.step_seconds = 0.03,
                   .step_samples = 64,
                   .steps = 7,
                   .meet_after = 7,
                   .reason = "no time for another step"};
  }
  return state;
}

TEST(RenderLiveTest, ShowsThePaceOfEachWorkerAndWhy) {
  Style wide = ascii;
  wide.width = 130;
  const auto lines = render_live(paced_job(1), wide);
  EXPECT_THAT(lines[1], HasSubstr("steps x size step time  reason"));
  EXPECT_THAT(lines[2], HasSubstr("7 x 64      30.0 ms  no time for another step"));
  EXPECT_THAT(lines[3], HasSubstr("rounds of 219.0 ms"));
}

TEST(RenderLiveTest, SaysWhyRatherThanHowLongAStepTakes) {
  Style middle = ascii;
  middle.width = 100;
  const auto lines = render_live(paced_job(1), middle);
  EXPECT_THAT(lines[1], HasSubstr("steps x size  reason"));
  EXPECT_THAT(lines[2],
              AllOf(HasSubstr("7 x 64     no time for another step"), HasSubstr("####==")));
  EXPECT_THAT(lines[4], HasSubstr("wait ."));
}

TEST(RenderLiveTest, LeavesOutWhyWhereThereIsNoRoom) {
  const auto lines = render_live(paced_job(1), ascii);
  EXPECT_THAT(lines[2], AllOf(HasSubstr("7 x 64      30.0 ms"), Not(HasSubstr("no time"))));
}

TEST(RenderLiveTest, FitsEveryTerminal) {
  for (const bool colour : {false, true}) {
    for (const std::size_t width : {1, 20, 40, 60, 79, 80, 100, 250}) {
      for (const std::size_t height : {1, 5, 8, 24}) {
        SCOPED_TRACE(fmt::format("colour {} width {} height {}", colour, width, height));
        const auto lines =
            render_live(job_of(10), {.width = width, .height = height, .colour = colour});
        EXPECT_LT(lines.size(), std::max<std::size_t>(height, 7));
        for (const auto& line : lines) {
          EXPECT_LE(width_of(without_colours(line)), width) << line;
        }
        const auto paced =
            render_live(paced_job(10), {.width = width, .height = height, .colour = colour});
        for (const auto& line : paced) {
          EXPECT_LE(width_of(without_colours(line)), width) << line;
        }
      }
    }
  }
}

TEST(RenderLiveTest, SaysHowManyWorkersItHasNoRoomFor) {
  const auto lines = render_live(job_of(10), {.width = 80, .height = 10});
  EXPECT_THAT(lines, testing::Contains(HasSubstr("and 6 more")));
}

TEST(RenderLiveTest, UsesColoursAndCharactersAsTheStyleAllows) {
  const auto plain = render_live(job_of(1), ascii)[2];
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("\x1b")), HasSubstr("##"), Not(HasSubstr("█"))));
  const auto rich = render_live(job_of(1), {.colour = true, .unicode = true})[2];
  EXPECT_THAT(rich, AllOf(HasSubstr("\x1b[32m█"), HasSubstr("\x1b[33m▒"), HasSubstr("\x1b[0m")));
}

TEST(RenderLiveTest, SurvivesNumbersThatAreNone) {
  JobState state = job_of(1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  state.status->loss = nan;
  state.status->workers[0].compute = nan;
  state.status->workers[0].samples_per_second = -1;
  const auto lines = render_live(state, ascii);
  EXPECT_THAT(lines[2], AllOf(HasSubstr("          0  "), HasSubstr("=====")));
  EXPECT_THAT(lines[3], HasSubstr("loss nan"));
}

TEST(RenderLiveTest, SaysThatItStartsBeforeThereIsAnything) {
  EXPECT_EQ(render_live({}, {.width = 10}), std::vector<std::string>{"starting  "});
}

TEST(RemainingTest, TakesTheNearestLimit) {
  JobState state = job_of(2);
  EXPECT_DOUBLE_EQ(*state.remaining_seconds(), 210);
  state.config.max_time = 100;
  EXPECT_DOUBLE_EQ(*state.remaining_seconds(), 10);
  state.config.max_steps = 703;
  EXPECT_DOUBLE_EQ(*state.remaining_seconds(), 0);
  state.status->epoch = 0;
  EXPECT_FALSE(state.remaining_seconds());
}

TEST(LinesTest, TellOfProgressInOneLineEach) {
  EXPECT_THAT(status_line(job_of(1)), HasSubstr("1:30   epoch 1.50 of 5   1,000 samples/s"));
  EXPECT_EQ(
      evaluation_line(
          {.round = 1000, .epoch = 2, .training_seconds = 3661, .accuracy = 0.5, .loss = 1.25}),
      "1:01:01   epoch 2.00   round 1,000   test accuracy 0.5000   test loss 1.2500");
  EXPECT_EQ(started_line(*job_of(2).started), "ssgd: lenet5 on mnist, 2 workers, runs/x");
}

TEST(SummaryTest, ShowsWorkersAndFigures) {
  const auto summary = nlohmann::ordered_json::parse(R"({
    "accuracy": 0.8612, "best_accuracy": 0.87, "target_accuracy": 0.85,
    "time_to_target_seconds": 12.345, "training_seconds": 83.2, "throughput": 12345.4,
    "cluster_efficiency": 0.931, "exchanged_bytes": 44695848,
    "workers": [{"rank": 0, "device": "gpu-new", "samples": 120000, "steps": 1875,
                 "computing_time_ratio": 0.961, "communication_ratio": 0.012,
                 "wait_ratio": 0.027, "exchanged_bytes": 999}]})");
  EXPECT_THAT(
      render_summary(summary, "runs/x"),
      ElementsAre("worker  device   samples  steps  computing  communication   wait  exchanged",
                  "     0  gpu-new  120,000  1,875     96.1 %          1.2 %  2.7 %      999 B", "",
                  "accuracy            0.8612 (best 0.8700)", "time to 0.85        12.35 s",
                  "throughput          12,345 samples/s", "cluster efficiency  93.1 %",
                  "training clock      83.20 s", "exchanged           44.7 MB",
                  "run folder          runs/x"));
}

TEST(SummaryTest, EndsWithTheLossOfTheModel) {
  const auto summary = nlohmann::ordered_json::parse(
      R"({"workers": [], "lost_model": {"round": 12, "text": "not finite"}})");
  EXPECT_EQ(render_summary(summary, "run").back(), "lost model          not finite");
}

TEST(SummaryTest, SaysThatTimeWasVirtual) {
  const auto lines = render_summary({{"virtual_time", true}, {"training_seconds", 83.2}}, "runs/x");
  EXPECT_THAT(lines, testing::Contains("training clock      83.20 s of virtual time"));
}

TEST(SummaryTest, SaysWhichFiguresAreNotOfTheWholeRun) {
  const auto lines = [](double session) {
    return render_summary({{"training_seconds", 12}, {"session_seconds", session}}, "runs/x");
  };
  EXPECT_THAT(lines(4), testing::Contains("last session        4.00 s: the table, efficiency, "
                                          "bytes and staleness are of it"));
  EXPECT_THAT(lines(12), testing::Not(testing::Contains(HasSubstr("session"))));
}

TEST(SummaryTest, ShowsWhatBecameOfGradientsAndServers) {
  const auto summary = nlohmann::ordered_json::parse(R"({
    "staleness": {"median": 3, "p99": 6, "max": 9}, "dropped_gradients": 1234,
    "skipped_batches": 2,
    "servers": [{"shard": 0, "updates": 5000, "busy_ratio": 0.125, "exchanged_bytes": 1e9,
                 "queue_length": {"mean": 1.25, "max": 4}}],
    "workers": [{"rank": 2, "dropped_because": "worker 2 died"}]})");
  const auto lines = render_summary(summary, "runs/x");
  EXPECT_THAT(lines,
              testing::IsSupersetOf(
                  {"staleness           median 3, p99 6, at most 9",
                   "dropped             1,234 gradients", "not finite          2 batches",
                   "server 0            5,000 updates, busy 12.5 %, 1 GB exchanged, queue of 1.2",
                   "lost                worker 2 died"}));
}

TEST(SummaryTest, LeavesOutAnAccuracyThatWasNotMeasured) {
  const auto summary = nlohmann::ordered_json::parse(
      R"({"accuracy": null, "target_accuracy": 0.9, "time_to_target_seconds": null})");
  const auto lines = render_summary(summary, "runs/x");
  EXPECT_THAT(lines, testing::Not(testing::Contains(HasSubstr("accuracy"))));
  EXPECT_THAT(lines, testing::Contains("time to 0.9         not reached"));
}

TEST(TextTest, NamesTimesAndBytes) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(59.99), "0:59");
  EXPECT_EQ(clock_text(3600), "1:00:00");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1 kB");
  EXPECT_EQ(bytes_text(44695848), "44.7 MB");
  EXPECT_EQ(bytes_text(2e18), "2e+03 PB");
}

}  // namespace
}  // namespace syncopate::cli
