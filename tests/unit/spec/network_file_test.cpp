// Goal:   a user's own network is given by the path of its file, is distinguished from another file
//         by its content, and is refused if the file cannot be a network.
// Method: files of a few bytes; options as on the command line and in a configuration file.
#include "spec/network_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "spec/config_file.hpp"
#include "spec/job_plan.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::filesystem::path file_with(const std::string& name, const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  write_file(path, content);
  return path;
}

TrainConfig resolved_network(TrainConfig config) {
  return resolve_config(
      std::move(config),
      {.devices = {}, .usual_learning_rate = [](Optimizer) { return 0.1; }, .time = "now"});
}

TrainConfig config_with(const std::filesystem::path& file) {
  TrainConfig config;
  set(config, "network", file.string());
  return config;
}

TEST(NetworkFile, IsAPathAndNotAName) {
  for (const char* path : {"model.pt", "model.pth", "./model", "/nets/lenet5"}) {
    EXPECT_TRUE(is_network_file(path)) << path;
  }
  for (const std::string_view name : network_names()) {
    EXPECT_FALSE(is_network_file(name)) << name;
  }
  EXPECT_EQ(refusal([] {
              TrainConfig config;
              set(config, "network", "lenet6");
            }).substr(0, 20),
            "expected one of mlp,");
}

TEST(NetworkFile, IsCalledByItsOwnNameAndWrittenAsItsPath) {
  TrainConfig config = config_with("nets/model.pt");
  EXPECT_EQ(config.network->name, "model.pt");
  EXPECT_EQ(value_of(config, "network"), "nets/model.pt");
  EXPECT_THAT(to_toml(config), HasSubstr("network = 'nets/model.pt'"));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
  EXPECT_NE(config, config_with("other/model.pt"));
  const TrainConfig copy = config;
  config = TrainConfig{};
  EXPECT_EQ(copy.network->file, "nets/model.pt") << "a copy outlives its original";
}

TEST(NetworkFile, IsTheSameFileInAnyFolder) {
  const TrainConfig config = resolved_network(config_with(file_with("whole.pt", "x")));
  EXPECT_EQ(config.run_dir, "runs/now-ssgd-whole.pt");
  const auto here = std::filesystem::relative(testing::TempDir());
  EXPECT_EQ(resolved_network(config_with(here / "whole.pt")).network, config.network);
}

TEST(NetworkFile, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(refusal([] { resolved_network(config_with("none/model.pt")); }),
              AllOf(HasSubstr("--network: expected a TorchScript file, found none at /"),
                    HasSubstr("none/model.pt")));
  EXPECT_THAT(refusal([] { resolved_network(config_with(testing::TempDir())); }),
              HasSubstr("found none"));
}

TEST(NetworkFile, HasNoIndependentDraws) {
  TrainConfig config = config_with(file_with("whole.pt", "x"));
  set(config, "init", "independent");
  EXPECT_THAT(refusal([&] { resolved_network(config); }), HasSubstr("choose init broadcast"));
}

TEST(NetworkFile, IsOneThatAllMembersHave) {
  const TrainConfig config = resolved_network(config_with(file_with("agreed.pt", "one")));
  const std::string first = JobPlan(config).agreement(7);
  EXPECT_THAT(first, HasSubstr("of agreed.pt (checksum 7a6c86f1, 7 float32 parameters)"));
  EXPECT_EQ(JobPlan(config).agreement(7), first);
  file_with("agreed.pt", "two");
  EXPECT_NE(JobPlan(config).agreement(7), first);
}

TEST(NetworkFile, HasBatchNormByTheNamesOfItsBuffers) {
  TrainConfig config = config_with(file_with("plain.pt", "conv.weight"));
  EXPECT_THAT(refusal([&] { check_given(config, {"batch-norm"}); }),
              HasSubstr("--batch-norm has no effect without a network with BatchNorm"));
  config = config_with(file_with("norm.pt", "weight running_mean running_var"));
  EXPECT_EQ(refusal([&] { check_given(config, {"batch-norm"}); }), "no ConfigError");
}

TEST(NetworkOptions, AreReadBackFromAConfiguration) {
  TrainConfig config;
  EXPECT_EQ(value_of(config, "resize"), "");
  EXPECT_EQ(value_of(config, "precision"), "float32");
  set(config, "resize", 32);
  set(config, "precision", "bf16");
  EXPECT_EQ(config.resize, 32U);
  EXPECT_EQ(config.precision, Precision::bf16);
  EXPECT_THAT(to_toml(config), AllOf(HasSubstr("resize = 32"), HasSubstr("precision = 'bf16'")));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
  EXPECT_THAT(refusal([&] { set(config, "resize", 0); }), HasSubstr("from 1 to 4096"));
  EXPECT_THAT(refusal([&] { set(config, "precision", "fp16"); }), HasSubstr("float32, bf16"));
}

TEST(NetworkOptions, StayWhenARunIsResumed) {
  for (const char* name : {"network", "resize", "precision"}) {
    EXPECT_FALSE(find_field(name)->resumable) << name;
  }
}

}  // namespace
}  // namespace syncopate
