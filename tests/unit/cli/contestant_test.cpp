// Goal:   a list of schemes with options is parsed into their configurations, or is refused in one
//         line that names the wrong term.
// Method: examples of each rule.
#include "cli/compare/contestant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "tests/support/config_options.hpp"

namespace syncopate::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

CommonOptions two_workers() {
  CommonOptions common;
  common.config.workers = 2;
  common.config.batch_size = 32;
  common.learning_rates = {0.01, 0.1};
  return common;
}

std::string refusal(const std::string& list, const CommonOptions& common = two_workers()) {
  try {
    read_contestants(list, common);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(ReadContestantsTest, OptionsOfATermGoOverTheCommonOnes) {
  const auto contestants =
      read_contestants("ssgd,downpour:push-every=2:batch-size=16", two_workers());
  ASSERT_EQ(contestants.size(), 2U);
  EXPECT_EQ(contestants[0].label, "ssgd");
  EXPECT_EQ(contestants[0].config.scheme, "ssgd");
  EXPECT_EQ(contestants[0].config.batch_size, 32U);
  EXPECT_EQ(contestants[1].label, "downpour:push-every=2:batch-size=16");
  EXPECT_EQ(contestants[1].config.scheme, "downpour");
  EXPECT_EQ(value_of(contestants[1].config, "push-every"), "2");
  EXPECT_EQ(contestants[1].config.batch_size, 16U);
  EXPECT_EQ(contestants[1].config.workers, 2U);
  EXPECT_FALSE(contestants[1].is_limit);
}

TEST(ReadContestantsTest, ALearningRateOfItsOwnLeavesNothingToChoose) {
  const auto contestants = read_contestants("ssgd,asgd:learning-rate=0.5", two_workers());
  EXPECT_THAT(contestants[0].learning_rates, ElementsAre(0.01, 0.1));
  EXPECT_THAT(contestants[1].learning_rates, ElementsAre(0.5));
  EXPECT_FALSE(contestants[1].config.learning_rate);
}

TEST(ReadContestantsTest, ABatchSizeOfItsOwnLeavesNothingToChoose) {
  CommonOptions common = two_workers();
  common.batch_sizes = {16, 64};
  const auto contestants = read_contestants("ssgd,asgd:batch-size=8", common);
  EXPECT_THAT(contestants[0].batch_sizes, ElementsAre(16U, 64U));
  EXPECT_TRUE(contestants[1].batch_sizes.empty());
  EXPECT_EQ(contestants[1].config.batch_size, 8U);
}

TEST(ReadBatchSizesTest, AreNumbersEachOnce) {
  EXPECT_THAT(read_batch_sizes("16,64"), ElementsAre(16U, 64U));
  for (const char* list : {"", "16,", "0", "x", "16,16", "1.5"}) {
    EXPECT_THROW(read_batch_sizes(list), ConfigError) << list;
  }
}

TEST(ReadContestantsTest, ASwitchStandsAlone) {
  const auto contestants = read_contestants("ssgd:balance,ssgd", two_workers());
  EXPECT_EQ(value_of(contestants[0].config, "balance"), "true");
  EXPECT_EQ(value_of(contestants[1].config, "balance"), "false");
}

TEST(ReadContestantsTest, AColonOfAValueIsNoNewOption) {
  const auto contestants =
      read_contestants("ssgd:compress=topk:0.01:balance,asgd:device=cuda:0", two_workers());
  EXPECT_EQ(to_string(contestants[0].config.compress), "topk:0.01");
  EXPECT_EQ(value_of(contestants[0].config, "balance"), "true");
  EXPECT_EQ(contestants[1].config.device, "cuda:0");
  EXPECT_THAT(refusal("ssgd:batch-size=3:compress"), HasSubstr("compress needs a value"));
}

TEST(ReadContestantsTest, RefusesByTermWhatCannotBeMeant) {
  EXPECT_THAT(refusal("ssgd,sgd"), AllOf(HasSubstr("--schemes: 'sgd'"), HasSubstr("ssgd")));
  EXPECT_THAT(refusal("ssgd:bach-size=3"), HasSubstr("did you mean 'batch-size'?"));
  EXPECT_THAT(refusal("ssgd:batch-size"), HasSubstr("batch-size needs a value"));
  EXPECT_THAT(refusal("ssgd:batch-size=0"), HasSubstr("batch-size: expected"));
  EXPECT_THAT(refusal("ssgd:cluster=x"), HasSubstr("common to all schemes"));
  EXPECT_THAT(refusal("ssgd:slack=2"), HasSubstr("has no effect without"));
  EXPECT_THAT(refusal("ssgd,asgd,ssgd"), HasSubstr("'ssgd' appears twice"));
  EXPECT_THAT(refusal("local"), HasSubstr("found 2 workers"));
  EXPECT_THAT(refusal("ssgd,"), HasSubstr("--schemes: ''"));
}

TEST(ReadContestantsTest, RefusesAnOptionThatAppearsTwice) {
  EXPECT_EQ(refusal("esync,esync:pacing=paper:pacing=timed"),
            "--schemes: 'esync:pacing=paper:pacing=timed': expected each option once, found pacing "
            "again; leave one out");
  EXPECT_THAT(refusal("ssgd:balance:balance"), HasSubstr("found balance again"));
  EXPECT_THAT(refusal("nbssgd:aggregate=auto:through=allreduce"),
              HasSubstr("found aggregate again"));
}

TEST(ReadContestantsTest, AnOptionForAllHasAnEffectOnOneOfThem) {
  CommonOptions common = two_workers();
  common.given = {{"slack", "2"}};
  EXPECT_THAT(refusal("ssgd,asgd", common), HasSubstr("--slack has no effect"));
  EXPECT_EQ(refusal("ssgd,ssp", common), "no ConfigError");
}

TEST(ReadRatesTest, ReadsAList) {
  EXPECT_THAT(read_rates("0.01,1e-1"), ElementsAre(0.01, 0.1));
  for (const char* bad : {"", "0", "-1", "0.1,", "x", "0.1,0.1"}) {
    EXPECT_THROW(read_rates(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace syncopate::cli
