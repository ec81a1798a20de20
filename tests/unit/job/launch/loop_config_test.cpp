// Goal:   programs with a loop of their own have the documented options; contradictions between
//         command line and program are refused; the configuration of the job follows from both.
// Method: options as text; the test compares configurations and error messages.
#include "job/launch/loop_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "job/launch/program_environment.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::Not;

GivenOptions merged(const GivenOptions& line, const GivenOptions& program) {
  return merged_options({line, "on the command line"}, {program, "in the program"});
}

TEST(LoopOptionsTest, HoldEveryOptionOfEverySchemeButBalance) {
  for (const OptionSpec& option : scheme_options()) {
    const auto options = loop_options();
    const bool known = std::ranges::any_of(
        options, [&](const OptionSpec* other) { return other->name == option.name; });
    EXPECT_EQ(known, option.name != "balance") << option.name;
  }
}

TEST(LoopOptionsTest, RefuseWhatTheProgramDecides) {
  EXPECT_THAT(refusal([] {
                check_loop_options({{"epochs", "3"}});
              }),
              HasSubstr("--epochs is an option of `syncopate train`: a program"));
  EXPECT_THAT(refusal([] {
                check_loop_options({{"local-step", "3"}});
              }),
              HasSubstr("a job has no option local-step; did you mean 'local-steps'?"));
  EXPECT_THAT(refusal([] { check_loop_options({{"scheme", "esink"}}); }), HasSubstr("esync"));
  EXPECT_THAT(refusal([] {
                check_loop_options({{"data-order", "sorted"}});
              }),
              HasSubstr("--data-order: expected one of auto, fixed, leased"));
}

TEST(LoopOptionsTest, NameTheArgumentForABatchByTheSpeedsOfDevices) {
  for (const char* const name : {"balance", "global-batch"}) {
    EXPECT_THAT(refusal([&] {
                  check_loop_options({{name, "64"}});
                }),
                HasSubstr("a program passes global_batch to partition_dataset"));
  }
}

TEST(LoopOptionsTest, SayHowABatchIsDivided) {
  const auto with_batch = [](GivenOptions options, Division division) {
    set_batch(options, 48, division);
    return options;
  };
  EXPECT_EQ(with_batch({{"scheme", "esync"}}, Division::equal),
            (GivenOptions{{"scheme", "esync"}, {"batch-size", "48"}}));
  EXPECT_EQ(with_batch({{"scheme", "esync"}}, Division::by_speed),
            (GivenOptions{{"scheme", "esync"}, {"global-batch", "48"}}));
  EXPECT_EQ(with_batch({}, Division::by_speed),
            (GivenOptions{{"global-batch", "48"}, {"balance", "true"}}))
      << "ssgd, the usual scheme, follows speeds by this option";
}

TEST(LoopOptionsTest, MayBeGivenTwiceButNotDifferently) {
  const GivenOptions line{{"scheme", "local-sgd"}, {"local-steps", "4"}};
  EXPECT_EQ(merged(line, {{"scheme", "local-sgd"}, {"seed", "2"}}),
            (GivenOptions{{"scheme", "local-sgd"}, {"local-steps", "4"}, {"seed", "2"}}));
  EXPECT_EQ(merged(line, {{"local-steps", "04"}}), line);
  EXPECT_EQ(refusal([&] {
              merged(line, {{"scheme", "esync"}});
            }),
            "--scheme is esync in the program, but local-sgd on the command line; give it in one "
            "place");
}

TEST(LoopConfigTest, HasNeitherAnEndNorEvaluationsOfItsOwn) {
  const TrainConfig config =
      loop_config({{"scheme", "asgd"}, {"batch-size", "8"}, {"learning-rate", "0.1"}}, 2);
  EXPECT_EQ(config.epochs, open_end);
  EXPECT_EQ(config.eval_every.unit, Every::Unit::never);
  EXPECT_EQ(config.checkpoint_every.unit, Every::Unit::never);
  EXPECT_EQ(config.workers, 2U);
  EXPECT_EQ(config.servers, 1U);
  EXPECT_EQ(config.server_process, ServerProcess::shared);
  EXPECT_EQ(config.learning_rate, 0.1);
}

TEST(LoopConfigTest, RefusesAsTheCommandLineDoes) {
  EXPECT_THAT(refusal([] { loop_config({{"scheme", "local"}}, 2); }), HasSubstr("found 2 workers"));
  EXPECT_THAT(refusal([] {
                loop_config({{"scheme", "ssgd"}, {"local-steps", "4"}}, 2);
              }),
              HasSubstr("--local-steps has no effect without --scheme"));
  EXPECT_THAT(refusal([] {
                loop_config({{"servers", "2"}}, 2);
              }),
              HasSubstr("scheme ssgd has no parameter server"));
}

/// A step of nbssgd is a mini-batch; a step of the other schemes is a whole batch.
TEST(LoopConfigTest, DividesTheBatchAsTheSchemeDoes) {
  const auto step = [](const char* scheme) {
    return samples_of_loop_step(loop_config({{"scheme", scheme}, {"batch-size", "32"}}, 2), 32);
  };
  EXPECT_EQ(step("nbssgd"), 4U);
  EXPECT_EQ(step("ssgd"), 32U);
  EXPECT_EQ(step("esync"), 32U);
}

DataOrder data_order_of(const GivenOptions& options, std::uint32_t workers = 2) {
  return data_order_in(options, loop_config(options, workers));
}

TEST(DataOrderTest, IsLeasedWhereWorkersTakeDifferentNumbersOfSteps) {
  for (const char* const scheme : {"ssgd", "local-sgd", "diloco"}) {
    EXPECT_EQ(data_order_of({{"scheme", scheme}}), DataOrder::fixed) << scheme;
  }
  for (const char* const scheme : {"esync", "nbssgd", "asgd", "ssp", "easgd", "hogwild"}) {
    EXPECT_EQ(data_order_of({{"scheme", scheme}}), DataOrder::leased) << scheme;
  }
  EXPECT_EQ(data_order_of({{"scheme", "nbssgd"}, {"commit", "barrier"}, {"mini-batches", "1"}}),
            DataOrder::fixed);
}

TEST(DataOrderTest, MayBeGiven) {
  EXPECT_EQ(data_order_of({{"scheme", "ssgd"}, {"data-order", "leased"}}), DataOrder::leased);
  EXPECT_EQ(data_order_of({{"scheme", "asgd"}, {"data-order", "fixed"}}), DataOrder::fixed);
  EXPECT_EQ(data_order_of({{"scheme", "asgd"}, {"data-order", "auto"}}), DataOrder::leased);
  EXPECT_THAT(refusal([] {
                merged({{"data-order", "fixed"}}, {{"data-order", "leased"}});
              }),
              HasSubstr("--data-order is leased in the program, but fixed on the command line"));
}

TEST(DataOrderTest, OfOneWorkerIsFixed) {
  EXPECT_EQ(data_order_of({{"scheme", "esync"}, {"data-order", "leased"}}, 1), DataOrder::fixed);
}

TEST(ProgramEnvironmentTest, CarriesALaunch) {
  const ProgramLaunch launch{.coordinator = "127.0.0.1:4711",
                             .key = "secret",
                             .rank = 1,
                             .size = 3,
                             .local_rank = 1,
                             .options = {{"scheme", "esync"}, {"run-dir", "a \"b\""}}};
  std::map<std::string, std::string> variables;
  for (const Variable& variable : variables_of(launch)) {
    variables[variable.name] = variable.value;
  }
  const auto environment = [&](const char* name) { return variables[name]; };
  EXPECT_EQ(program_launch_in(environment), launch);
  variables["SYNCOPATE_RANK"] = "3";
  EXPECT_THAT(refusal([&] { program_launch_in(environment); }), HasSubstr("contradict each other"));
  variables["SYNCOPATE_RANK"] = "first";
  EXPECT_THAT(refusal([&] { program_launch_in(environment); }),
              HasSubstr("expected SYNCOPATE_RANK to be a number, found 'first'"));
  EXPECT_EQ(program_launch_in([](const char*) { return std::string(); }), std::nullopt);
}

TEST(ProgramEnvironmentTest, BetweenHostsNamesTheFileOfTheKey) {
  std::string folder = (std::filesystem::temp_directory_path() / "loop_config_XXXXXX").string();
  const std::filesystem::path file = std::filesystem::path(::mkdtemp(folder.data())) / "job.key";
  write_file(file, "a key that each host has\n", readable_by_owner);
  const ProgramLaunch launch{.coordinator = "node1:9091",
                             .key = "a key that each host has",
                             .rank = 2,
                             .size = 4,
                             .address = {},
                             .encrypted = true,
                             .key_file = file.string()};
  std::map<std::string, std::string> variables{{"SYNCOPATE_KEY", "of an outer job"}};
  for (const Variable& variable : variables_of(launch)) {
    EXPECT_THAT(variable.value, Not(HasSubstr(launch.key))) << variable.name;
    variables[variable.name] = variable.value;
  }
  const auto environment = [&](const char* name) { return variables[name]; };
  EXPECT_EQ(program_launch_in(environment), launch);
  variables["SYNCOPATE_RANK"].clear();
  EXPECT_EQ(program_launch_in(environment), std::nullopt) << "another launcher numbers it";
  std::filesystem::remove_all(folder);
}

TEST(ProgramEnvironmentTest, TellsTorchWhereItsStoreIs) {
  const auto variables =
      torch_variables_of({.rank = 3, .size = 4, .local_rank = 1}, 2, "node1:9092");
  EXPECT_THAT(variables, testing::ElementsAre(
                             Variable{"RANK", "3"}, Variable{"WORLD_SIZE", "4"},
                             Variable{"LOCAL_RANK", "1"}, Variable{"LOCAL_WORLD_SIZE", "2"},
                             Variable{"MASTER_ADDR", "node1"}, Variable{"MASTER_PORT", "9092"}));
}

}  // namespace
}  // namespace syncopate
