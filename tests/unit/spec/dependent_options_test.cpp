// Goal:   an option that the job does not read is refused. A list with one entry per worker must
//         have the right length.
// Method: each option in configurations that read it and in configurations that do not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "spec/config.hpp"
#include "spec/config_fields.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::string& name, const std::string& text) {
  TrainConfig config;
  return refusal([&] { set_field_from_text(*find_field(name), config, text); });
}

TEST(WorkerDevicesTest, AreOneForAllOrOneForEach) {
  TrainConfig config;
  config.workers = 3;
  config.device = "cuda";
  check_devices(config);
  EXPECT_EQ(device_of_worker(config, 2), "cuda");
  config.device = "cuda:0,cpu,auto";
  check_devices(config);
  EXPECT_EQ(device_of_worker(config, 0), "cuda:0");
  EXPECT_EQ(device_of_worker(config, 1), "cpu");
  EXPECT_EQ(device_of_worker(config, 2), "auto");
  config.workers = 2;
  EXPECT_EQ(
      refusal([&] {
        resolve_config(config, {.devices = {}, .usual_learning_rate = {}, .time = "now"});
      }),
      "device cuda:0,cpu,auto lists 3 devices for 2 workers; list one for each worker, or name one "
      "for all");
  EXPECT_EQ(refusal([&] { device_of_worker(config, 3); }),
            "device cuda:0,cpu,auto lists 3 devices, none of them for worker 3");
}

std::string refusal_of_job(std::initializer_list<std::pair<const char*, const char*>> options) {
  TrainConfig config;
  config.workers = 2;
  for (const auto& [name, text] : options) {
    set(config, name, text);
  }
  return refusal(
      [&] { resolve_config(config, {.devices = {}, .usual_learning_rate = {}, .time = "now"}); });
}

TEST(ClippingTest, NeedsGradientsOfWhichAllIsSent) {
  for (const char* const scheme : {"ssgd", "nbssgd"}) {
    EXPECT_THAT(refusal_of_job({{"scheme", scheme}, {"clip-norm", "1"}, {"compress", "onebit"}}),
                HasSubstr("choose --compress int8, --optimizer sgd, or esync"));
  }
  const char* const none = "no ConfigError";
  EXPECT_EQ(refusal_of_job({{"clip-norm", "1"}, {"compress", "int8"}}), none);
  EXPECT_EQ(refusal_of_job({{"clip-norm", "1"}, {"compress", "topk:0.01"}, {"optimizer", "sgd"}}),
            none);
  EXPECT_EQ(refusal_of_job({{"scheme", "esync"}, {"clip-norm", "1"}, {"compress", "onebit"}}),
            none);
}

TEST(GlobalBatchTest, HasNoGreaterLeastPart) {
  EXPECT_THAT(
      refusal_of_job({{"scheme", "esync"}, {"global-batch", "64"}, {"min-batch-size", "65"}}),
      HasSubstr("--min-batch-size 65 is more than the global batch of 64"));
}

TEST(OptimizerOptionsTest, AreRefusedWhereNoRuleReadsThem) {
  const auto refused = [](const char* option, const char* optimizer, const char* server_optimizer) {
    TrainConfig config;
    config.scheme = "downpour";
    set(config, "optimizer", optimizer);
    set(config, "server-optimizer", server_optimizer);
    return refusal([&] { check_given(config, {option}); }) != "no ConfigError";
  };
  const auto read_by = [&](const char* option) {
    std::vector<std::string> names;
    for (const auto& [name, value] : names_of(Optimizer{})) {
      const std::string optimizer(name);
      if (!refused(option, optimizer.c_str(), "sgd")) {
        names.push_back(optimizer);
        EXPECT_FALSE(refused(option, "sgd", optimizer.c_str())) << option << " of a server's rule";
      }
    }
    return names;
  };
  using testing::ElementsAre;
  EXPECT_THAT(read_by("beta1"), ElementsAre("adam", "adamw"));
  EXPECT_THAT(read_by("beta2"), ElementsAre("adam", "adamw"));
  EXPECT_THAT(read_by("alpha"), ElementsAre("rmsprop"));
  EXPECT_THAT(read_by("epsilon"), ElementsAre("rmsprop", "adam", "adamw", "adagrad"));
  EXPECT_THAT(read_by("momentum"), ElementsAre("momentum", "nesterov"));
}

/// When the given options are checked, options of a scheme that follow from others are not yet set.
TEST(OptimizerOptionsTest, AreTakenByEveryScheme) {
  for (const SchemeSpec* const scheme : all_schemes()) {
    TrainConfig config;
    config.scheme = scheme->name;
    EXPECT_NO_THROW(check_given(config, {"scheme", "momentum"})) << scheme->name;
  }
}

TEST(BatchNormTest, IsRefusedWhereItIsNotEvaluated) {
  TrainConfig config;
  EXPECT_THAT(refusal([&] { check_given(config, {"batch-norm"}); }),
              HasSubstr("--batch-norm has no effect without a network with BatchNorm"));
  config.network = &network_named("resnet18-v1");
  check_given(config, {"batch-norm"});
  config.eval_every = {};
  EXPECT_THAT(refusal([&] { check_given(config, {"batch-norm"}); }), HasSubstr("no effect"));
}

TEST(WeightInitTest, IsOfBuiltInNetworksAlone) {
  TrainConfig config;
  check_given(config, {"weight-init"});
  const NetworkSpec own{.name = "lenet5"};
  config.network = &own;
  EXPECT_THAT(refusal([&] { check_given(config, {"weight-init"}); }),
              HasSubstr("--weight-init has no effect without a built-in network"));
}

TEST(WeightInitTest, IsOneOfThree) {
  TrainConfig config;
  EXPECT_EQ(value_of(config, "weight-init"), "default");
  set(config, "weight-init", "he");
  EXPECT_EQ(config.weight_init, WeightInit::he);
  EXPECT_THAT(refusal_of("weight-init", "normal"),
              HasSubstr("expected one of default, xavier, he"));
}

TEST(PacingMarginTest, IsThePapersAlone) {
  TrainConfig config;
  config.scheme = "esync";
  EXPECT_THAT(refusal([&] { check_given(config, {"pacing-margin"}); }),
              HasSubstr("--pacing paper"));
  set(config, "pacing", "paper");
  check_given(config, {"pacing-margin"});
  set_field_from_text(*find_field("pacing-margin"), config, "0.5");
  EXPECT_EQ(value_of(config, "pacing-margin"), "0.5");
  set_field_from_text(*find_field("pacing-margin"), config, "auto");
  EXPECT_EQ(value_of(config, "pacing-margin"), "");
  EXPECT_THAT(refusal_of("pacing-margin", "-1"), HasSubstr("expected a number from 0"));
}

}  // namespace
}  // namespace syncopate
