// Goal:   the options of schemes decide the members of a job. They are refused where they
//         contradict each other or have no effect. Earlier names still work.
// Method: handwritten configurations; closed values and the texts of errors.

#include "scheme/scheme_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "base/errors.hpp"
#include "collective/cost_model.hpp"
#include "scheme/esync.hpp"
#include "spec/config_fields.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

TEST(ResolveConfig, GivesNbssgdWhatItMeetsIn) {
  const ConfigFacts facts{
      .devices = {}, .usual_learning_rate = [](Optimizer) { return 0.07; }, .time = "now"};
  TrainConfig config;
  config.workers = 4;
  config.scheme = "nbssgd";
  EXPECT_EQ(resolve_config(config, facts).servers, 0U);
  EXPECT_FALSE(uses_shared_model(config));
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.07 / 1.6)
      << "updates are delayed";
  set(config, "commit", "barrier");
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.07);
  set(config, "aggregate", "server");
  EXPECT_EQ(resolve_config(config, facts).servers, 1U);
  EXPECT_FALSE(server_keeps_model(resolve_config(config, facts))) << "it only adds";
}

TrainConfig resolved(TrainConfig config) {
  return resolve_config(std::move(config),
                        {.devices = {}, .usual_learning_rate = {}, .time = "now"});
}

TrainConfig esync_of(std::uint32_t workers) {
  TrainConfig config;
  config.scheme = "esync";
  config.workers = workers;
  return config;
}

TEST(ResolveConfig, GivesEsyncAGlobalBatch) {
  EXPECT_EQ(resolved(esync_of(4)).global_batch, 64U);
  EXPECT_FALSE(resolved(esync_of(4)).batch_size);
  EXPECT_EQ(resolved(esync_of(16)).global_batch, 128U) << "8 for each";
  EXPECT_EQ(resolved(esync_of(1)).batch_size, 64U);
  TrainConfig config = esync_of(8);
  config.network = NetworkChoice::of("resnet18-v1");
  EXPECT_EQ(resolved(config).global_batch, 128U) << "16 for each, with BatchNorm";
  config.batch_size = 20;
  EXPECT_FALSE(resolved(config).global_batch);
  config = esync_of(4);
  set(config, "pacing", "paper");
  EXPECT_EQ(resolved(config).batch_size, 64U) << "whole mini-batches";
  config = esync_of(4);
  set(config, "fragments", 4);
  EXPECT_EQ(resolved(config).batch_size, 64U) << "a fragment is synchronized in every fourth round";
  config = esync_of(4);
  config.split = Split::parse("class");
  EXPECT_EQ(resolved(config).batch_size, 64U) << "parts of the data differ";
  config.scheme = "ssgd";
  EXPECT_EQ(resolved(config).batch_size, 64U);
}

TEST(ResolveConfig, LetsWorkersOfEsyncMissRoundsWhereTheyCan) {
  const auto max_period = [](const TrainConfig& config) {
    return resolved(config).scheme_options[option::max_period];
  };
  EXPECT_EQ(max_period(esync_of(4)), 64U);
  const std::map<const char*, const char*> full{{"pacing", "paper"},
                                                {"overlap", "off"},
                                                {"aggregate", "server"},
                                                {"compress", "int8"},
                                                {"fragments", "2"}};
  for (const auto& [name, value] : full) {
    TrainConfig config = esync_of(4);
    set(config, name, value);
    EXPECT_EQ(max_period(config), 1U) << name;
    set(config, "max-period", 8);
    EXPECT_THAT(refusal([&] { resolved(config); }), HasSubstr("--max-period 8 needs ")) << name;
  }
  TrainConfig config = esync_of(4);
  config.split = Split::parse("class");
  EXPECT_EQ(max_period(config), 1U);
  config = esync_of(4);
  set(config, "max-period", 6);
  EXPECT_EQ(refusal([&] { resolved(config); }), "--max-period 6: expected a power of two");
}

TEST(ResolveConfig, TakesALeastPartOfAGlobalBatchAlone) {
  TrainConfig config = esync_of(4);
  EXPECT_FALSE(resolved(config).scheme_options[option::min_batch_size]) << "measured";
  set(config, "min-batch-size", 20);
  EXPECT_EQ(resolved(config).scheme_options[option::min_batch_size], 20U);
  config.batch_size = 32;
  EXPECT_EQ(refusal([&] { resolved(config); }),
            "--min-batch-size 20 needs --global-batch, of which it is the least part");
  set(config, "min-batch-size", 1);
  EXPECT_NO_THROW(resolved(config)) << "as a resumed run has it";
}

TEST(ResolveConfig, RefusesFragmentsWhereRoundsNeedTheWholeModel) {
  for (const auto& [name, value] : std::map<const char*, const char*>{
           {"overlap", "off"}, {"aggregate", "server"}, {"drift-correction", "scaffold"}}) {
    TrainConfig config = esync_of(4);
    set(config, "fragments", 2);
    EXPECT_NO_THROW(resolved(config));
    set(config, name, value);
    EXPECT_THAT(refusal([&] { resolved(config); }), HasSubstr("--fragments 2 needs ")) << name;
  }
}

TEST(ResolveConfig, GivesRacyNbssgdSharedMemoryOrAServerThatKeepsTheModel) {
  const ConfigFacts facts{
      .devices = {}, .usual_learning_rate = [](Optimizer) { return 0.07; }, .time = "now"};
  TrainConfig config;
  config.workers = 4;
  config.scheme = "nbssgd";
  set(config, "commit", "racy");
  EXPECT_EQ(resolve_config(config, facts).servers, 0U);
  EXPECT_TRUE(uses_shared_model(config));
  EXPECT_FALSE(server_keeps_model(config));
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.01);
  set(config, "aggregate", "server");
  EXPECT_EQ(resolve_config(config, facts).servers, 1U);
  EXPECT_FALSE(uses_shared_model(config));
  EXPECT_TRUE(server_keeps_model(config));
  EXPECT_TRUE(may_compress(config));
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.01);
}

TEST(CheckGiven, OptionsOfNbssgdAreItsOwn) {
  TrainConfig config;
  EXPECT_EQ(refusal([&] { check_given(config, {"mini-batches"}); }),
            "--mini-batches has no effect without --scheme nbssgd");
  EXPECT_THROW(check_given(config, {"signal"}), ConfigError);
  EXPECT_THROW(check_given(config, {"commit"}), ConfigError);
  config.scheme = "nbssgd";
  EXPECT_NO_THROW(check_given(config, {"mini-batches", "signal", "commit", "aggregate"}));
  set(config, "aggregate", "server");
  EXPECT_NO_THROW(check_given(config, {"aggregate"}));
  set(config, "commit", "racy");
  EXPECT_NO_THROW(check_given(config, {"signal", "aggregate"}));
  set(config, "aggregate", "auto");
  EXPECT_THROW(check_given(config, {"aggregate"}), ConfigError) << "it goes to shared memory";
}

TEST(CheckConfig, AButterflyHasAPowerOfTwoOfWorkers) {
  TrainConfig config;
  set(config, "aggregate", "butterfly");
  config.workers = 8;
  EXPECT_NO_THROW(check_config(config));
  config.workers = 6;
  EXPECT_EQ(refusal([&] { check_config(config); }),
            "aggregate butterfly needs a power of two of workers, found 6; choose binary-blocks, "
            "which takes any number, or auto");
  config.scheme = "asgd";  // its workers do not synchronize
  EXPECT_NO_THROW(check_config(config));
}

TEST(CheckConfig, NbssgdReducesByAnAllreduceOrAServer) {
  TrainConfig config;
  config.scheme = "nbssgd";
  config.workers = 3;
  for (const std::string aggregate : {"tree", "server"}) {
    set(config, "aggregate", aggregate);
    EXPECT_NO_THROW(check_config(config)) << aggregate;
  }
  set(config, "commit", "racy");
  EXPECT_NO_THROW(check_config(config));
  set(config, "aggregate", "tree");
  EXPECT_EQ(refusal([&] { check_config(config); }),
            "commit racy updates shared memory, or a server's model with aggregate server; "
            "found aggregate tree; leave it out");
}

TEST(Aggregate, IsAReducerOrAServer) {
  for (const std::string_view name : OptionTraits<Aggregate>::choices()) {
    const Aggregate aggregate = OptionTraits<Aggregate>::read(std::string(name));
    EXPECT_EQ(name_of_value(aggregate), name);
    EXPECT_EQ(aggregate.by_server, name == "server");
    EXPECT_EQ(aggregate.is_automatic(), name == "auto");
  }
}

TEST(CheckConfig, BackupWorkersLeaveSomeToWaitFor) {
  TrainConfig config;
  config.scheme = "backup";
  config.workers = 3;
  set(config, "backup-workers", 2);
  EXPECT_NO_THROW(check_config(config));
  set(config, "backup-workers", 3);
  EXPECT_THROW(check_config(config), ConfigError);
}

TEST(OldOptions, SetWhatTheyStandForNow) {
  TrainConfig config;
  config.scheme = "nbssgd";
  EXPECT_EQ(set_old_option(config, "through", "server"), "aggregate");
  EXPECT_EQ(value_of(config, "aggregate"), "server");
  EXPECT_EQ(set_old_option(config, "through", "allreduce"), "aggregate");
  EXPECT_EQ(value_of(config, "aggregate"), "auto");
  EXPECT_EQ(set_old_option(config, "beside", "server"), std::nullopt);
  EXPECT_EQ(refusal([&] { set_old_option(config, "through", "air"); }),
            "expected one of allreduce, server, found 'air'");
}

TEST(OldOptions, AreReadFromFiles) {
  const TrainConfig config =
      parse_config("scheme = \"nbssgd\"\nthrough = \"server\"\n", "old.toml", {});
  EXPECT_EQ(value_of(config, "aggregate"), "server");
  EXPECT_THAT(to_toml(config), testing::Not(HasSubstr("through")));
}

}  // namespace
}  // namespace syncopate
