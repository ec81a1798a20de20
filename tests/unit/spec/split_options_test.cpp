// Goal:   the split of the data determines the defaults of other options, and contradictions are
//         refused.
// Method: examples of each rule, read from TOML.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

TrainConfig resolved(const std::string& toml) {
  TrainConfig config = parse_config(toml, "job.toml");
  config.workers = 4;
  return resolve_config(config, {.devices = {},
                                 .usual_learning_rate = [](Optimizer) { return 0.05; },
                                 .time = "20260131-235959"});
}

TEST(ResolveConfig, AWorkerWeighsItsDataWherePartsDiffer) {
  const TrainConfig esync = resolved("scheme = 'esync'\nsplit = 'dirichlet:0.3'\nmomentum = 0.8\n");
  EXPECT_EQ(value_of(esync, "weights"), "data");
  EXPECT_EQ(value_of(esync, "drift-correction"), "scaffold");
  EXPECT_EQ(value_of(esync, "local-rate"), "round");
  EXPECT_EQ(value_of(esync, "overlap"), "off");
  EXPECT_EQ(esync.optimizer, Optimizer::sgd);  // momentum applies to rounds
  EXPECT_EQ(value_of(esync, "outer-optimizer"), "momentum");
  EXPECT_EQ(value_of(esync, "outer-momentum"), "0.8");
  EXPECT_EQ(value_of(esync, "global-lr"), "1");
  EXPECT_EQ(esync.learning_rate, 0.05);
  const TrainConfig adam = resolved("scheme = 'esync'\nsplit = 'class'\noptimizer = 'adam'\n");
  EXPECT_EQ(adam.optimizer, Optimizer::adam);
  EXPECT_EQ(value_of(adam, "outer-optimizer"), "sgd");
  const TrainConfig inside =
      resolved("scheme = 'esync'\nsplit = 'class'\nouter_optimizer = 'sgd'\n");
  EXPECT_EQ(inside.optimizer, Optimizer::momentum);
  EXPECT_EQ(esync.warm_up, 0.125);
  EXPECT_EQ(resolved("scheme = 'esync'\nsplit = 'class'\nepochs = 0.5\n").warm_up, 0.0625);
  EXPECT_EQ(resolved("scheme = 'esync'\nsplit = 'class'\nwarm_up = 0.25\n").warm_up, 0.25);
  EXPECT_EQ(resolved("scheme = 'esync'\n").warm_up, 0);
  const TrainConfig ssgd = resolved("split = 'class'\n");
  EXPECT_EQ(ssgd.warm_up, 0);
  EXPECT_EQ(ssgd.optimizer, Optimizer::momentum);
  EXPECT_EQ(value_of(ssgd, "weights"), "data");
  EXPECT_THAT(to_toml(ssgd), testing::Not(testing::HasSubstr("drift_correction")));
  EXPECT_EQ(value_of(ssgd, "overlap"), "auto");
  EXPECT_EQ(value_of(resolved("scheme = 'asgd'\nsplit = 'class'\n"), "weights"), "samples");
  const TrainConfig iid = resolved("scheme = 'esync'\n");
  EXPECT_EQ(value_of(iid, "weights"), "samples");
  EXPECT_EQ(value_of(iid, "drift-correction"), "none");
  EXPECT_EQ(value_of(iid, "local-rate"), "step");
  EXPECT_EQ(value_of(iid, "overlap"), "auto");
  EXPECT_EQ(value_of(resolved("split = 'class'\nweights = 'uniform'\n"), "weights"), "uniform");
}

TEST(ResolveConfig, ReadsTheSplitOfOlderFiles) {
  const TrainConfig config = resolved("scheme = 'local-sgd'\nsplit_by_class = true\n");
  EXPECT_EQ(to_string(config.split), "class");
  EXPECT_FALSE(config.split_by_class);
  EXPECT_EQ(value_of(config, "weights"), "data");
  EXPECT_EQ(resolved("split_by_class = false\nweights = 'samples'\n").split, Split{});
}

TEST(CheckConfig, RefusesASplitInTwoWays) {
  for (const std::string split : {"dirichlet:2", "iid"}) {
    const std::string message = "split " + split +
                                " contradicts split-by-class, which is split class; leave one of "
                                "them out";
    EXPECT_EQ(refusal([&] { resolved("split = '" + split + "'\nsplit_by_class = true\n"); }),
              "job.toml: " + message);
    EXPECT_EQ(refusal([&] {
                check_given(parse_config("split_by_class = true\n", "job.toml",
                                         parse_config("split = '" + split + "'\n", "base.toml")),
                            {"split-by-class", "split"});
              }),
              message);
  }
  EXPECT_NO_THROW(resolved("split_by_class = false\nsplit = 'iid'\n"));
  const TrainConfig by_class = parse_config("split_by_class = true\n", "job.toml");
  EXPECT_EQ(parse_config(to_toml(by_class), "again.toml"), by_class) << "a run of a comparison";
  EXPECT_NO_THROW(resolved("split_by_class = true\nsplit = 'class'\n"));
  EXPECT_THAT(refusal([] { parse_config("split = 'dirichlet:0'\n", "job.toml"); }),
              HasSubstr("one of iid, class, dirichlet:ALPHA, found 'dirichlet:0'"));
}

TEST(CheckConfig, SharesAreOneForEachWorkerOfAnIidSplit) {
  EXPECT_EQ(value_of(resolved("shares = '4, 2,1,1'\n"), "shares"), "4,2,1,1");
  EXPECT_EQ(refusal([] { resolved("shares = '2,1,1'\n"); }),
            "shares 2,1,1 lists 3 shares for 4 workers; list one for each worker");
  EXPECT_EQ(refusal([] { resolved("shares = '2,1,1,1'\nsplit = 'class'\n"); }),
            "shares 2,1,1,1 need split iid, found split class, which divides the data by class; "
            "leave out one of them");
  for (const char* wrong : {"2,,1", "2,x", "0,1", "-1,1", "inf,1", ""}) {
    EXPECT_THAT(
        refusal([&] { parse_config(std::string("shares = '") + wrong + "'\n", "job.toml"); }),
        HasSubstr("expected numbers from 1e-06 to 1e+06 with commas between them"))
        << wrong;
  }
  EXPECT_EQ(parse_config(to_toml(resolved("shares = '1.5,1,1,1'\n")), "again.toml").shares,
            (std::vector<double>{1.5, 1, 1, 1}));
}

TEST(ResolveConfig, AFolderOfDataHasAnAbsolutePath) {
  EXPECT_EQ(resolved("data = './images/'\n").data,
            (std::filesystem::current_path() / "images/").string());
  EXPECT_EQ(resolved("data = 'cifar100'\n").data, "cifar100");
  EXPECT_THAT(refusal([] { parse_config("data = 'images'\n", "job.toml"); }),
              HasSubstr("one of fashion-mnist, mnist, cifar10, cifar100, synthetic, DIR/"));
}

TEST(CheckGiven, ImageSizesAreThoseOfFolders) {
  TrainConfig config;
  EXPECT_EQ(refusal([&] { check_given(config, {"image-size"}); }),
            "--image-size has no effect without --data DIR/, the path of a folder");
  EXPECT_NO_THROW(check_given(config, {"augment"}));
  config.data = "./images/";
  EXPECT_NO_THROW(check_given(config, {"image-size"}));
  EXPECT_THAT(refusal([&] { check_given(config, {"data-dir"}); }),
              HasSubstr("--data fashion-mnist, mnist, cifar10 or cifar100"));
}

TEST(CheckConfig, WeightsByDataNeedAMeanOverAllWorkers) {
  for (const std::string scheme : {"asgd", "easgd", "hogwild", "backup"}) {
    EXPECT_THAT(refusal([&] { resolved("scheme = '" + scheme + "'\nweights = 'data'\n"); }),
                AllOf(HasSubstr("weights data needs a scheme that takes a mean"),
                      HasSubstr("found scheme " + scheme)));
  }
}

TEST(CheckGiven, WeightsHaveAnEffectWhereWorkersAreWeighed) {
  TrainConfig config;
  for (const std::string scheme : {"easgd", "local"}) {
    config.scheme = scheme;
    EXPECT_EQ(refusal([&] { check_given(config, {"weights"}); }),
              "--weights has no effect without a scheme that weighs workers, which local and easgd "
              "do not");
  }
  for (const std::string scheme : {"ssgd", "asgd", "backup", "downpour", "hogwild", "nbssgd"}) {
    config.scheme = scheme;
    EXPECT_NO_THROW(check_given(config, {"weights"}));
  }
  EXPECT_THROW(check_given(config, {"drift-correction"}), ConfigError);
  EXPECT_THROW(check_given(config, {"local-rate"}), ConfigError);
}

}  // namespace
}  // namespace syncopate
