// Goal:   `syncopate bench` reads every option that its help lists, and refuses the others in one
//         line.
// Method: whole command lines through `run_cli` with a handler that records its argument.
#include "cli/bench/bench_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cli/handlers.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BenchCommandTest : public testing::Test {
 protected:
  /// Runs a command line; returns its exit status and standard error.
  std::pair<int, std::string> run(std::vector<std::string> words) {
    words.insert(words.begin(), {"syncopate", "bench"});
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    Handlers handlers{};
    handlers.bench = [this](const BenchCommand& command) {
      bench_ = command;
      return 0;
    };
    bench_.reset();
    testing::internal::CaptureStderr();
    const int status = run_cli(static_cast<int>(words.size()), argv.data(), handlers);
    return {status, testing::internal::GetCapturedStderr()};
  }

  /// Parses a command line that must be valid; returns the command.
  BenchCommand command(const std::vector<std::string>& words) {
    EXPECT_EQ(run(words), std::pair(0, std::string()));
    return bench_.value_or(BenchCommand{});
  }

  std::string refusal(const std::vector<std::string>& words) {
    const auto [status, error] = run(words);
    EXPECT_EQ(status, 2);
    EXPECT_EQ(error.find('\n'), error.size() - 1) << error;
    EXPECT_FALSE(bench_);
    return error;
  }

  std::optional<BenchCommand> bench_;
};

TEST_F(BenchCommandTest, ReadsTheOptionsOfAllreduce) {
  const auto bench = command({"allreduce", "--ranks", "4", "--bytes", "1KB,44.7MB", "--aggregate",
                              "ring", "--transport", "tcp", "--rounds", "7", "--markdown"});
  EXPECT_EQ(bench.benchmark, "allreduce");
  EXPECT_EQ(bench.transport, "tcp");
  EXPECT_THAT(bench.reducers, ElementsAre("ring"));
  EXPECT_EQ(bench.ranks, 4U);
  EXPECT_THAT(bench.bytes, ElementsAre(1000U, 44'700'000U));
  EXPECT_EQ(bench.effort.rounds, 7U);
  EXPECT_EQ(bench.form, Form::markdown);
}

TEST_F(BenchCommandTest, ReadsTheOptionsOfTheOthers) {
  const auto servers =
      command({"push-pull", "--workers", "4", "--servers", "2", "--seconds", "1.5", "--json"});
  EXPECT_EQ(servers.benchmark, "push-pull");
  EXPECT_EQ(servers.workers, 4U);
  EXPECT_EQ(servers.servers, 2U);
  EXPECT_EQ(servers.effort.seconds, 1.5);
  EXPECT_FALSE(servers.effort.rounds);
  EXPECT_EQ(servers.form, Form::json);
  const auto step = command({"step", "--network", "mlp", "--batch-size", "16", "--threads", "2"});
  EXPECT_EQ(step.network, "mlp");
  EXPECT_EQ(step.batch_size, 16U);
  EXPECT_EQ(step.threads, 2U);
  EXPECT_THAT(command({"latency", "--bytes", "63"}).bytes, ElementsAre(63U));
}

TEST_F(BenchCommandTest, MeasuresUsualSizesUnlessTold) {
  const auto bench = command({"allreduce"});
  EXPECT_EQ(bench.bytes.front(), 1000U);
  EXPECT_EQ(bench.bytes.back(), 100'000'000U);
  EXPECT_EQ(bench.ranks, 2U);
  EXPECT_EQ(bench.effort.seconds, 0.5);
  EXPECT_EQ(bench.form, Form::text);
  EXPECT_THAT(command({"push-pull"}).bytes, ElementsAre(4U * 11'175'370U));
}

TEST_F(BenchCommandTest, RefusesMistakes) {
  EXPECT_EQ(refusal({"alreduce"}),
            "syncopate: bench: expected one of allreduce, push-pull, latency, kernels, codecs, "
            "step, found "
            "'alreduce'; did you mean 'allreduce'?\n");
  EXPECT_THAT(refusal({}), HasSubstr("expected one of allreduce"));
  const auto allreduce = [&](const std::string& option, const std::string& value) {
    return refusal({"allreduce", option, value});
  };
  EXPECT_THAT(allreduce("--ranks", "1"),
              HasSubstr("--ranks: expected a whole number from 2 to 64"));
  EXPECT_THAT(allreduce("--bytes", "1KB,"), HasSubstr("--bytes: expected a list"));
  EXPECT_THAT(allreduce("--bytes", "1001"), HasSubstr("--bytes: expected a multiple of 4 bytes"));
  EXPECT_THAT(allreduce("--bytes", "5 MB"), HasSubstr("--bytes: expected a size like"));
  EXPECT_THAT(allreduce("--transport", "udp"), HasSubstr("--transport: expected one of shm"));
  EXPECT_THAT(allreduce("--aggregate", "ring,rnig"),
              HasSubstr("--aggregate: expected one of auto"));
  EXPECT_THAT(allreduce("--seconds", "0"), HasSubstr("--seconds: expected seconds above 0"));
  EXPECT_THAT(allreduce("--rounds", "0"), HasSubstr("--rounds: expected a whole number from 1"));
  EXPECT_THAT(refusal({"allreduce", "--json", "--markdown"}), HasSubstr("exclude each other"));
  EXPECT_EQ(
      refusal({"latency", "--ranks", "4"}),
      "syncopate: bench latency has no option --ranks; its own options are --transport, --bytes\n");
  EXPECT_THAT(refusal({"step", "--network", "lenet"}), HasSubstr("--network: expected"));
}

}  // namespace
}  // namespace syncopate::cli
