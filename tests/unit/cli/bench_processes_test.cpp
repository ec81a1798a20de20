// Goal:   a benchmark of several processes reports their results, or the error in one line.
// Method: real processes with small bodies that fail in each way, and whole benchmarks of few
//         rounds. tests/process/ covers their output on a terminal.
#include "cli/bench/bench_processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "base/errors.hpp"
#include "cli/bench/benchmarks.hpp"
#include "cli/bench/timing.hpp"
#include "collective/reducer.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using Json = nlohmann::ordered_json;

struct Ran {
  int status;
  std::string out, err;
};

Ran captured(const std::function<int()>& benchmark) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = benchmark();
  std::fflush(nullptr);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

/// Runs a process with `body` for each name; returns exit status and output.
Ran ran(const std::vector<std::string>& names, const ProcessBody& body) {
  return captured([&] { return run_processes(names, Form::json, body); });
}

Results results_of(const Ran& ran) {
  EXPECT_EQ(ran.status, exit_status::success) << ran.err;
  EXPECT_EQ(ran.err, "");
  return Json::parse(ran.out)["results"].get<Results>();
}

void wait_for_the_end() {
  for (;;) {
    ::pause();
  }
}

TEST(RunProcessesTest, PrintsWhatTheFirstOneTells) {
  const Ran done = ran({"a", "b"}, [](std::uint32_t index, BenchReporter& reporter) {
    if (index == 0) {
      reporter.begins("something");
      reporter.result({{"bytes", 4}});
      reporter.result({{"bytes", 8}});
    }
  });
  EXPECT_EQ(done.out, "{\"results\":[{\"bytes\":4},{\"bytes\":8}]}\n");
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.status, exit_status::success);
}

TEST(RunProcessesTest, NamesAProcessThatDies) {
  const Ran done = ran({"a", "b"}, [](std::uint32_t index, BenchReporter&) {
    index == 1 ? void(::kill(::getpid(), SIGKILL)) : wait_for_the_end();
  });
  EXPECT_THAT(done.err,
              MatchesRegex("syncopate: b \\(process [0-9]+\\) was killed by signal 9.*\n"));
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.status, exit_status::failure);
}

TEST(RunProcessesTest, TellsTheCauseAndNotWhatItLedTo) {
  const Ran done = ran({"a", "b", "c"}, [](std::uint32_t index, BenchReporter&) {
    if (index == 1) {
      throw InternalError("the sum is wrong");
    }
    throw PeerLost(NodeId{1}, "lost node 1");
  });
  EXPECT_EQ(done.err, "syncopate: the sum is wrong\n");
  EXPECT_EQ(done.status, exit_status::failure);
}

TEST(RunProcessesTest, EndsWithAStatusOfItsOwnForBadInput) {
  const Ran done =
      ran({"a"}, [](std::uint32_t, BenchReporter&) { throw ConfigError("no such device"); });
  EXPECT_EQ(done.err, "syncopate: no such device\n");
  EXPECT_EQ(done.status, exit_status::refused);
}

TEST(BenchTest, AllreduceSumsOverEveryTransportByEveryAlgorithm) {
  for (const std::string_view transport : {"shm", "tcp"}) {
    const auto names = own_reducer_names();
    std::vector<std::string> reducers(names.begin(), names.end());
    std::erase(reducers, "mpi");  // needs a launcher
    if (transport == "tcp") {
      std::erase(reducers, "shm");
    }
    const Results results = results_of(captured([&] {
      return bench_allreduce({.benchmark = "allreduce",
                              .transport = std::string(transport),
                              .reducers = reducers,
                              .ranks = 4,
                              .bytes = {4, 40'000},
                              .effort = {.rounds = 3},
                              .form = Form::json});
    }));
    ASSERT_EQ(results.size(), 2 * reducers.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i]["transport"], transport);
      EXPECT_EQ(results[i]["algorithm"], reducers[i / 2]);
      EXPECT_EQ(results[i]["ranks"], 4);
      EXPECT_EQ(results[i]["bytes"], i % 2 == 0 ? 4 : 40'000);
      EXPECT_EQ(results[i]["rounds"], 3);
      EXPECT_GT(results[i]["min_seconds"], 0.0);
    }
  }
}

TEST(BenchTest, PushPullTellsOfEveryWorkersRounds) {
  const Results results = results_of(captured([] {
    return bench_push_pull({.benchmark = "push-pull",
                            .servers = 2,
                            .workers = 3,
                            .bytes = {40'000},
                            .effort = {.rounds = 4},
                            .form = Form::json});
  }));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0]["servers"], 2);
  EXPECT_EQ(results[0]["workers"], 3);
  EXPECT_EQ(results[0]["rounds"], 4);
  EXPECT_GT(results[0]["cpu_seconds"], 0.0);
}

TEST(BenchTest, LatencySendsSmallMessagesBackAndForthAndLargeOnesInBulk) {
  const Results results = results_of(captured([] {
    return bench_latency({.benchmark = "latency",
                          .bytes = {64, 65'536, 65'537},
                          .effort = {.rounds = 3},
                          .form = Form::json});
  }));
  std::vector<std::string> patterns;
  for (const Json& result : results) {
    patterns.push_back(result["pattern"]);
    EXPECT_DOUBLE_EQ(result["bytes_per_second"].get<double>(),
                     result["bytes"].get<double>() / result["median_seconds"].get<double>());
  }
  EXPECT_THAT(patterns, ElementsAre("back and forth", "back and forth", "one way", "both ways"));
}

TEST(RoundsToFillTest, FillsTheTimeWithinBounds) {
  EXPECT_EQ(rounds_to_fill({.seconds = 0.5}, 0.001), 500U);
  EXPECT_EQ(rounds_to_fill({.seconds = 0.5}, 0.3), fewest_rounds);
  EXPECT_EQ(rounds_to_fill({.seconds = 0.5}, 1e-9), 100'000U);
  EXPECT_EQ(rounds_to_fill({.rounds = 2, .seconds = 0.5}, 0.001), 2U);
}

TEST(TimingsTest, TakesTheSlowestRankOfEachRound) {
  const Timings timings{.seconds = {{1, 5, 2}, {3, 4, 1}}};
  EXPECT_THAT(timings.slowest(), ElementsAre(3, 5, 2));
}

}  // namespace
}  // namespace syncopate::cli
