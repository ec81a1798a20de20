// Goal:   every numeric option of a job has a sensible range, so that no accepted number overflows
//         a sum, a product or a conversion; other numbers are refused in one line.
// Method: all fields of `train`, including those of schemes, with the ends of each range and with
//         numbers that users and fuzzers have typed; combinations of numbers that are too large
//         only together.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.hpp"
#include "base/time.hpp"
#include "spec/config.hpp"
#include "spec/config_fields.hpp"
#include "spec/config_file.hpp"
#include "spec/job_plan.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

bool is_whole(const Field& field) {
  return field.type == OptionType::whole32 || field.type == OptionType::whole64 ||
         field.type == OptionType::counts;
}

std::vector<const Field*> numeric_fields() {
  std::vector<const Field*> fields;
  for (const Field& field : train_fields()) {
    if (is_whole(field) || field.type == OptionType::real) {
      fields.push_back(&field);
    }
  }
  return fields;
}

std::string refusal_of(const Field& field, const std::string& text) {
  TrainConfig config;
  const std::string line = refusal([&] { set_field_from_text(field, config, text); });
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return line;
}

TEST(OptionRanges, AreFiniteForEveryNumber) {
  EXPECT_GT(numeric_fields().size(), 30U);
  for (const Field* field : numeric_fields()) {
    SCOPED_TRACE(field->name);
    EXPECT_TRUE(std::isfinite(field->limits.most));
    EXPECT_LE(field->limits.most, is_whole(*field) ? 9223372036854775807.0 : 1e38);
    EXPECT_LT(field->limits.least, field->limits.most);
  }
}

TEST(OptionRanges, RefuseWhatIsBeyondThem) {
  for (const Field* field : numeric_fields()) {
    SCOPED_TRACE(field->name);
    for (const char* text : {"1e300", "-1", "nan", "inf", "-1e300", "0x10", "1,x"}) {
      EXPECT_THAT(refusal_of(*field, text), HasSubstr("expected a")) << text;
    }
    if (is_whole(*field)) {
      EXPECT_THAT(refusal_of(*field, "9223372036854775808"), HasSubstr("expected a whole number"));
    }
    if (field->limits.most < 4294967295.0) {
      EXPECT_THAT(refusal_of(*field, "4294967295"), HasSubstr("found 4294967295"));
    }
    if (field->limits.most < 1e15) {
      const std::string beyond = fmt::format("{:.0f}", std::floor(field->limits.most) + 1);
      EXPECT_THAT(refusal_of(*field, beyond), HasSubstr("expected a"));
    }
  }
}

/// 2^32 − 1 is a valid seed, and a float32 can represent a rate of that size.
TEST(OptionRanges, AreNarrowForAllButSeedsAndRates) {
  std::vector<std::string> wide;
  for (const Field* field : numeric_fields()) {
    if (field->limits.most >= 4294967295.0) {
      wide.emplace_back(field->name);
    }
  }
  EXPECT_THAT(wide, testing::UnorderedElementsAre("learning-rate", "global-lr",
                                                  "server-learning-rate", "seed"));
}

TEST(OptionRanges, TakeTheirEnds) {
  for (const Field* field : numeric_fields()) {
    SCOPED_TRACE(field->name);
    const Limits& limits = field->limits;
    TrainConfig config;
    if (!limits.below_most && limits.most < 1e15) {
      EXPECT_NO_THROW(set_field_from_text(*field, config, fmt::format("{}", limits.most)));
    }
    if (!limits.above_least) {
      EXPECT_NO_THROW(set_field_from_text(*field, config, fmt::format("{}", limits.least)));
    }
  }
}

TEST(OptionRanges, HoldInFilesToo) {
  const auto refusal_in_file = [](const std::string& toml) {
    return refusal([&] { parse_config(toml, "job.toml"); });
  };
  for (const Field* field : numeric_fields()) {
    for (const char* text : {"1e300", "-1", "nan", "inf"}) {
      EXPECT_THAT(refusal_in_file(fmt::format("{} = {}\n", field->key(), text)),
                  testing::StartsWith(fmt::format("job.toml:1:{}: {}: expected a",
                                                  field->key().size() + 4, field->key())));
    }
  }
}

/// The text may come from a coordinator: a joining process parses it before it knows the job.
TEST(ParseConfig, RefusesATextThatWouldExhaustTheStack) {
  std::string deep;
  for (int level = 0; level < 40'000; ++level) {
    deep += "a.";
  }
  EXPECT_THAT(refusal([&] { parse_config(deep + "a = 1\n", "the job at 127.0.0.1:1"); }),
              testing::StartsWith("the job at 127.0.0.1:1:1:34: expected at most 16 dots"));
}

TEST(OptionRanges, OfTimesFitDurations) {
  for (const char* name : {"wait-limit", "max-time", "round-time", "pacing-margin"}) {
    const double most = find_field(name)->limits.most;
    EXPECT_EQ(to_seconds(from_seconds(most)), most) << name;
    EXPECT_LE(20 * most, longest_seconds) << name << ": a wait may take 20 times as long";
  }
}

TEST(OptionRanges, OfBatchesFitTheirSum) {
  const double samples = find_field("batch-size")->limits.most * most_workers;
  EXPECT_LE(samples, std::numeric_limits<std::uint32_t>::max());
}

TEST(OptionRanges, OfPeriodsAndSplits) {
  for (const char* text : {"1e300s", "1e-300 epochs", "1e10 steps", "1e7 epochs"}) {
    EXPECT_THAT(refusal_of(*find_field("eval-every"), text), HasSubstr("expected a period from"));
    EXPECT_THAT(refusal_of(*find_field("checkpoint-every"), text), HasSubstr("found"));
  }
  for (const char* text : {"dirichlet:1e300", "dirichlet:1e-300", "dirichlet:-1"}) {
    EXPECT_THAT(refusal_of(*find_field("split"), text), HasSubstr("expected one of")) << text;
  }
  EXPECT_THAT(refusal([] { Split::parse("dirichlet:1e300"); }), HasSubstr("from 1e-06 to 1e+06"));
}

TrainConfig with_workers(std::uint32_t workers) {
  TrainConfig config;
  config.workers = workers;
  return config;
}

TEST(CheckConfig, RefusesMoreWorkersThanAJobMayHave) {
  EXPECT_NO_THROW(check_config(with_workers(1024)));
  EXPECT_EQ(refusal([] { check_config(with_workers(1025)); }),
            "expected at most 1024 workers and 1024 servers, found 1025 and 0; start fewer");
}

TEST(ResolveConfig, RefusesFoldersThatNoFileFitsInto) {
  const ConfigFacts facts{.devices = {}, .usual_learning_rate = {}, .time = "now"};
  TrainConfig config;
  config.run_dir = std::string(100, 'a');
  EXPECT_NO_THROW(resolve_config(config, facts));
  std::string deep;
  while (deep.size() < 5000) {
    deep += "abcdefgh/";
  }
  config.run_dir = deep;
  EXPECT_THAT(refusal([&] { resolve_config(config, facts); }),
              HasSubstr("expected a path of at most 3840 bytes"));
  config.run_dir = "runs/\xff";
  EXPECT_THAT(refusal([&] { resolve_config(config, facts); }), HasSubstr("UTF-8"));
}

TEST(JobPlan, RefusesAStepOfMoreThanADay) {
  const auto path = std::filesystem::path(testing::TempDir()) / "syncopate-slow-device.toml";
  write_file(path, "[[devices]]\nname = \"slow\"\nsamples_per_second = 0.01\n");
  TrainConfig config = with_workers(1);
  config.cluster = path;
  EXPECT_NO_THROW(JobPlan{config});
  config.time_scale = 1e6;
  EXPECT_THAT(refusal([&] { JobPlan{config}; }),
              testing::AllOf(HasSubstr("a batch of 64 samples on slow of "),
                             HasSubstr("takes 6.4e+09 s, expected at most 86400 s")));
  config.time_scale = 1;
  config.batch_size = 1 << 20;
  EXPECT_THAT(refusal([&] { JobPlan{config}; }), HasSubstr("lower --time-scale or --batch-size"));
}

TEST(JobPlan, TakesAnyNumberOfMiniBatchesThatIsAllowed) {
  TrainConfig config = with_workers(2);
  config.scheme = "nbssgd";
  set(config, "mini-batches", 1'000'000);
  EXPECT_EQ(JobPlan(config).least_step_samples(), 1U);
}

}  // namespace
}  // namespace syncopate
