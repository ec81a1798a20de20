// Goal:   a configuration means the same on the command line, in a file and in a run folder. An
//         invalid one is refused in one line with the position and the expected value.
// Method: examples of each rule; a round trip of random configurations through TOML and through
//         text.
#include "spec/config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "spec/config_fields.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string refusal_of(const std::string& toml) {
  return refusal([&] { parse_config(toml, "job.toml"); });
}

std::string refusal_of(const std::string& name, const std::string& text) {
  TrainConfig config;
  return refusal([&] { set_field_from_text(*find_field(name), config, text); });
}

TEST(EveryTest, ReadsEachUnit) {
  EXPECT_EQ(Every::parse("200steps"), (Every{Every::Unit::steps, 200}));
  EXPECT_EQ(Every::parse("1 epoch"), (Every{Every::Unit::epochs, 1}));
  EXPECT_EQ(Every::parse(" 0.5epochs "), (Every{Every::Unit::epochs, 0.5}));
  EXPECT_EQ(Every::parse("10s"), (Every{Every::Unit::seconds, 10}));
  EXPECT_EQ(Every::parse("never"), Every{});
}

TEST(EveryTest, ReadsWhatItWrites) {
  for (const char* text :
       {"200 steps", "1 step", "1 epoch", "0.5 epochs", "1e-05 epochs", "10 s", "never"}) {
    EXPECT_EQ(Every::parse(text).to_string(), text);
  }
}

TEST(EveryTest, RefusesWhatIsNoPeriod) {
  for (const char* text : {"", "10", "steps", "0 steps", "-1 epochs", "1.5 steps", "1 eon", "inf s",
                           "nan s", "1 s 2 s", "nevermore"}) {
    EXPECT_THAT(refusal([&] { Every::parse(text); }), HasSubstr(fmt::format("found '{}'", text)));
  }
}

TEST(FieldTest, DefaultsPassTheirOwnRules) {
  const TrainConfig defaults;
  for (const Field& field : train_fields()) {
    const OptionValue value = get_field(field, defaults);
    if (std::holds_alternative<std::monostate>(value)) {
      EXPECT_FALSE(field.when_unset.empty()) << field.name;
      continue;
    }
    TrainConfig config;
    EXPECT_NO_THROW(set_field_from_text(field, config, to_text(value))) << field.name;
    EXPECT_EQ(config, defaults) << field.name;
  }
}

TEST(FieldTest, TakesTheEndsOfARangeAndNothingBeyond) {
  TrainConfig config;
  set_field_from_text(*find_field("target-accuracy"), config, "1");
  EXPECT_EQ(config.target_accuracy, 1);
  set_field_from_text(*find_field("seed"), config, "9223372036854775807");
  EXPECT_EQ(config.seed, 9223372036854775807u);
  EXPECT_THAT(refusal_of("target-accuracy", "0"), HasSubstr("above 0 to 1, found 0"));
  EXPECT_THAT(refusal_of("target-accuracy", "1.01"), HasSubstr("found 1.01"));
  EXPECT_THAT(refusal_of("momentum", "1"), HasSubstr("from 0 and below 1"));
  EXPECT_THAT(refusal_of("batch-size", "0"), HasSubstr("a whole number from 1"));
  EXPECT_THAT(refusal_of("batch-size", "4294967296"), HasSubstr("to 1048576, found 4294967296"));
  EXPECT_THAT(refusal_of("seed", "-1"), HasSubstr("found -1"));
  for (const char* text : {"-1", "0", "1025"}) {
    EXPECT_EQ(refusal_of("workers", text),
              fmt::format("expected a whole number from 1 to 1024, found {}", text));
  }
}

TEST(FieldTest, RefusesWhatIsNoNumber) {
  EXPECT_EQ(refusal_of("global-batch", "many"),
            "expected a whole number from 1 to 1048576, found 'many'");
  EXPECT_EQ(refusal_of("global-batch", "1.5"),
            "expected a whole number from 1 to 1048576, found '1.5'");
  EXPECT_EQ(refusal_of("batch-size", "1,2.5"),
            "expected a whole number from 1 to 1048576, or one for each worker with commas between "
            "them, found '1,2.5'");
  EXPECT_EQ(refusal_of("batch-size", "8,0"), "expected a whole number from 1 to 1048576, found 0");
  EXPECT_EQ(refusal_of("epochs", "5x"), "expected a number above 0 to 1000000, found '5x'");
  EXPECT_THAT(refusal_of("epochs", "inf"), HasSubstr("found 'inf'"));
  EXPECT_THAT(refusal_of("epochs", ""), HasSubstr("found ''"));
}

TEST(FieldTest, SuggestsTheNearestChoice) {
  EXPECT_THAT(refusal_of("scheme", "sgd"), HasSubstr("did you mean 'ssgd'?"));
  EXPECT_THAT(refusal_of("network", "resnet18"), HasSubstr("did you mean 'resnet18-v1'?"));
  EXPECT_THAT(refusal_of("network", "zebra"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal_of("device", "gpu"), HasSubstr("one of auto, cpu, cuda, cuda:N"));
}

TEST(FieldTest, TakesNumberedDevices) {
  TrainConfig config;
  set_field_from_text(*find_field("device"), config, "cuda:3");
  EXPECT_EQ(config.device, "cuda:3");
  EXPECT_THAT(refusal_of("device", "cuda:"), HasSubstr("expected one of"));
  EXPECT_THAT(refusal_of("device", "cuda:x"), HasSubstr("expected one of"));
  set_field_from_text(*find_field("device"), config, "cuda:0,cpu,cuda");
  EXPECT_EQ(config.device, "cuda:0,cpu,cuda");
  for (const char* list : {"cpu,", ",cpu", "cpu,gpu", "cpu, cpu", "cuda:0,cuda:"}) {
    EXPECT_THAT(refusal_of("device", list), HasSubstr("expected one of")) << list;
  }
}

TEST(ConfigFileTest, ReadsOverABase) {
  TrainConfig base;
  base.epochs = 9;
  const TrainConfig config =
      parse_config("scheme = 'local'\nmax_time = 30\neval_every = '10 s'\n", "job.toml", base);
  EXPECT_EQ(config.scheme, "local");
  EXPECT_EQ(config.max_time, 30);
  EXPECT_EQ(config.eval_every, (Every{Every::Unit::seconds, 10}));
  EXPECT_EQ(config.epochs, 9);
}

TEST(ConfigFileTest, HasNoWorkersWhereNobodyGaveThem) {
  TrainConfig config;
  EXPECT_THAT(to_toml(config), Not(HasSubstr("\nworkers =")));
  EXPECT_EQ(value_of(config, "workers"), "");
  config.workers = 3;
  EXPECT_THAT(to_toml(config), HasSubstr("\nworkers = 3\n"));
  EXPECT_EQ(parse_config("workers = 0\n", "job.toml", config).workers, 0U)
      << "files of an earlier version";
}

TEST(ConfigFileTest, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(refusal_of("seed = 1\nbatch_sise = 32\n"),
            "job.toml:2:1: unknown key 'batch_sise'; did you mean 'batch_size'?");
  EXPECT_THAT(refusal_of("batch-size = 32\n"), HasSubstr("did you mean 'batch_size'?"));
  EXPECT_EQ(refusal_of("batch_size = 'x'\n"),
            "job.toml:1:14: batch_size: expected a whole number from 1 to 1048576, or one for each "
            "worker with commas between them, found 'x'");
  EXPECT_THAT(refusal_of("batch_size = 0\n"), StartsWith("job.toml:1:14: batch_size: expected"));
  EXPECT_THAT(refusal_of("split_by_class = 1\n"), HasSubstr("expected true or false, found 1"));
  EXPECT_THAT(refusal_of("seed = [1]\n"), HasSubstr("found an array; write one value"));
  EXPECT_THAT(refusal_of("[seed]\n"), StartsWith("job.toml:1:"));
  EXPECT_THAT(refusal_of("epochs = nan\n"), HasSubstr("found nan"));
  EXPECT_THAT(refusal_of("seed = \n"), StartsWith("job.toml:1:"));
  EXPECT_THAT(refusal_of("seed = \n"), Not(HasSubstr("\n")));
}

/// Draws configurations in which each field has any value that the field allows.
class RandomConfig {
 public:
  explicit RandomConfig(std::uint64_t seed) : random_(seed) {}

  TrainConfig draw() {
    TrainConfig config;
    for (const Field& field : train_fields()) {
      if (random_.below(4) != 0) {
        set_field(field, config, value_for(field));
      }
    }
    return config;
  }

 private:
  OptionValue value_for(const Field& field) {
    if (field.choices != nullptr) {
      const auto choices = field.choices();
      return std::string(choices[random_.below(choices.size())]);
    }
    if (field.type == OptionType::flag) {
      return random_.below(2) == 1;
    }
    if (field.type == OptionType::period) {
      return Every{Every::Unit::epochs, random_.uniform() + 1e-9}.to_string();
    }
    if (field.type == OptionType::path) {
      return path();
    }
    if (field.name == "shares") {
      return fmt::format("{},{}", random_.uniform() + 0.1, 1 + random_.below(9));
    }
    return number_for(field);
  }

  OptionValue number_for(const Field& field) {
    const double most = std::min(field.limits.most, 1e15);
    if (field.type == OptionType::counts && random_.below(2) == 0) {
      return fmt::format("{},{}", 1 + random_.below(1000), 1 + random_.below(1000));
    }
    if (field.type == OptionType::whole32 || field.type == OptionType::whole64 ||
        field.type == OptionType::counts) {
      return static_cast<std::int64_t>(1 + random_.below(1000));
    }
    return std::max({random_.uniform() * most, field.limits.least, 1e-300});
  }

  /// Returns a random path with characters that need escapes.
  std::string path() {
    constexpr std::string_view letters = "ab /\\\"'\t#=\n[]";
    std::string text = "é";
    for (std::uint64_t left = random_.below(8); left > 0; --left) {
      text += letters[random_.below(letters.size())];
    }
    return text;
  }

  Random random_;
};

TEST(ConfigFileTest, ReadsBackWhatItWrites) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TrainConfig config = RandomConfig(seed).draw();
    const std::string toml = to_toml(config);
    ASSERT_EQ(parse_config(toml, "config.toml"), config) << toml;
  }
}

TEST(FieldTest, ReadsBackTheTextOfAnyValue) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const TrainConfig config = RandomConfig(seed).draw();
    TrainConfig copy;
    for (const Field& field : train_fields()) {
      if (const std::string text = to_text(get_field(field, config)); !text.empty()) {
        set_field_from_text(field, copy, text);
      }
    }
    ASSERT_EQ(copy, config);
  }
}

TEST(CheckConfigTest, RefusesContradictions) {
  TrainConfig config;
  config.scheme = "local";
  config.workers = 2;
  EXPECT_THAT(refusal([&] { check_config(config); }), HasSubstr("found 2 workers"));
  config = {};
  config.target_accuracy = 0.9;
  config.eval_every = {};
  EXPECT_THAT(refusal([&] { check_config(config); }), HasSubstr("eval-every is never"));
  config = {};
  config.virtual_time = true;
  EXPECT_THAT(refusal([&] { check_config(config); }), HasSubstr("name one by --cluster"));
  config = {};
  config.optimizer = Optimizer::nesterov;
  config.momentum = 0;
  EXPECT_THAT(refusal([&] { check_config(config); }), HasSubstr("needs a momentum above 0"));
  config = {};
  config.epochs = 2;
  config.warm_up = 3;
  EXPECT_THAT(refusal([&] { check_config(config); }), HasSubstr("does not fit into 2 epochs"));
  config = {};
  config.workers = 2;
  set_field_from_text(*find_field("batch-size"), config, "16,8,4");
  EXPECT_EQ(refusal([&] { check_config(config); }),
            "batch size 16,8,4 lists 3 sizes for 2 workers; list one for each");
  config = {};
  config.batch_size = 16;
  config.global_batch = 64;
  EXPECT_EQ(
      refusal([&] { check_config(config); }),
      "batch size 16 of each worker and global batch 64 exclude each other; give one of them");
  config = {};
  config.workers = 2;
  config.global_batch = 3;
  EXPECT_EQ(refusal([&] { check_config(config); }),
            "global batch 3: expected at least 2 samples for each of 2 workers, 4 in all");
  EXPECT_NO_THROW(check_config({}));
}

TEST(CheckGivenTest, RefusesABatchAboveItsLimit) {
  TrainConfig config;
  const auto set = [&](const char* name, const char* sizes) {
    set_field_from_text(*find_field(name), config, sizes);
  };
  set("batch-size", "32");
  set("max-batch-size", "64,16");
  EXPECT_EQ(
      refusal([&] {
        check_given(config, {"batch-size", "max-batch-size"});
      }),
      "batch size 32 of worker 1 is above its max batch size 16; lower one or raise the other");
  EXPECT_NO_THROW(check_given(config, {"max-batch-size"})) << "it cuts the usual batch";
  set("batch-size", "64,16");
  EXPECT_NO_THROW(check_given(config, {"batch-size", "max-batch-size"}));
  set("batch-size", "16,8,99");
  EXPECT_NO_THROW(check_given(config, {"batch-size", "max-batch-size"}))
      << "check_config refuses it";
}

TEST(CheckGivenTest, RefusesOptionsWithoutEffect) {
  TrainConfig config;
  config.optimizer = Optimizer::adam;
  EXPECT_NO_THROW(check_given(config, {"optimizer"}));
  EXPECT_EQ(refusal([&] {
              check_given(config, {"optimizer", "momentum"});
            }),
            "--momentum has no effect without --optimizer momentum or nesterov");
  EXPECT_THAT(refusal([&] { check_given({}, {"schedule-step"}); }), HasSubstr("--schedule step"));
  EXPECT_THAT(refusal([&] { check_given({}, {"schedule-factor"}); }), HasSubstr("cosine"));
  EXPECT_THAT(refusal([&] { check_given({}, {"time-scale"}); }), HasSubstr("--cluster"));
  config.data = "synthetic";
  EXPECT_THAT(refusal([&] { check_given(config, {"data-dir"}); }), HasSubstr("--data"));
}

TrainConfig compressing(const std::string& scheme, const std::string& compress) {
  TrainConfig config;
  config.scheme = scheme;
  config.workers = scheme == "local" ? 1 : 2;
  set(config, "compress", compress);
  return config;
}

TEST(Config, RefusesToCompressWhereNothingTravelsThatCouldBe) {
  for (const std::string scheme : {"local", "easgd", "hogwild"}) {
    EXPECT_THAT(
        refusal([&] { check_config(compressing(scheme, "int8")); }),
        AllOf(HasSubstr("compress int8 needs a scheme"), HasSubstr("found scheme " + scheme)));
  }
  TrainConfig racy = compressing("nbssgd", "bf16");
  set(racy, "commit", "racy");
  EXPECT_THAT(refusal([&] { check_config(racy); }), HasSubstr("compress bf16 needs a scheme"));
  TrainConfig ring = compressing("ssgd", "topk:0.1");
  set(ring, "aggregate", "ring");
  EXPECT_THAT(refusal([&] { check_config(ring); }),
              AllOf(HasSubstr("compress topk:0.1"), HasSubstr("found aggregate ring")));
  for (const std::string scheme : {"ssgd", "local-sgd", "diloco", "esync", "nbssgd", "asgd",
                                   "dc-asgd", "ssp", "backup", "downpour"}) {
    EXPECT_NO_THROW(check_config(compressing(scheme, "onebit"))) << scheme;
  }
  EXPECT_THAT(refusal([&] { check_given({}, {"compress-remote"}); }),
              HasSubstr("--compress-remote has no effect without --compress"));
  EXPECT_THAT(refusal([&] { check_given(compressing("easgd", "none"), {"compress"}); }),
              HasSubstr("--compress has no effect without ssgd, local-sgd"));
}

TEST(Config, ReadsWhatToCompressBy) {
  TrainConfig config;
  const Field& compress = *find_field("compress");
  set_field_from_text(compress, config, "topk:0.25");
  EXPECT_EQ(value_of(config, "compress"), "topk:0.25");
  for (const std::string wrong : {"topk", "topk:0", "topk:2", "zip"}) {
    EXPECT_THAT(
        refusal([&] { set_field_from_text(compress, config, wrong); }),
        AllOf(HasSubstr("one of none, bf16, fp16, int8, onebit, topk:RATIO, topk:RATIO/2bit"),
              HasSubstr("found '" + wrong + "'")));
  }
}

ConfigFacts facts(std::optional<std::uint32_t> devices) {
  return {
      .devices = devices, .usual_learning_rate = usual_learning_rate, .time = "20260131-235959"};
}

TEST(ResolveConfigTest, FillsWhatWasLeftOpen) {
  const TrainConfig config = resolve_config({}, facts(std::nullopt));
  EXPECT_EQ(config.workers, 1u);
  EXPECT_EQ(config.learning_rate, 0.05);
  EXPECT_EQ(config.run_dir, "runs/20260131-235959-ssgd-lenet5");
}

TEST(ResolveConfigTest, KeepsWhatWasGiven) {
  TrainConfig given;
  given.workers = 3;
  given.learning_rate = 0.2;
  given.run_dir = "here";
  given.cluster = "clusters/../mixed.toml";
  const TrainConfig config = resolve_config(given, facts(std::nullopt));
  EXPECT_EQ(config.workers, 3u);
  EXPECT_EQ(config.learning_rate, 0.2);
  EXPECT_EQ(config.run_dir, "here");
  EXPECT_EQ(config.cluster, std::filesystem::current_path() / "mixed.toml");
}

TEST(ResolveConfigTest, TakesWorkersFromTheCluster) {
  TrainConfig given;
  given.cluster = "mixed.toml";
  EXPECT_EQ(resolve_config(given, facts(4)).workers, 4u);
  given.workers = 4;
  EXPECT_EQ(resolve_config(given, facts(4)).workers, 4u);
  given.workers = 3;
  EXPECT_EQ(refusal([&] { resolve_config(given, facts(4)); }),
            "3 workers do not fit mixed.toml, which has 4 devices; leave out workers");
}

TEST(ResolveConfig, TakesWorkersFromTheRanksThatWereStarted) {
  ConfigFacts started = facts(std::nullopt);
  started.ranks = 5;
  TrainConfig config;
  EXPECT_EQ(resolve_config(config, started).workers, 5U);
  config.scheme = "asgd";
  config.servers = 2;
  EXPECT_EQ(resolve_config(config, started).workers, 3U);
  config.workers = 5;
  EXPECT_EQ(refusal([&] { resolve_config(config, started); }),
            "5 workers do not fit 5 ranks, 2 of them servers; leave out workers");
  config.workers = 0;
  config.servers = 5;
  EXPECT_EQ(refusal([&] { resolve_config(config, started); }),
            "5 ranks, 5 of them servers were started, which leaves none for a worker; start more");
}

TEST(ResolveConfig, RanksAreThoseOfTheCluster) {
  ConfigFacts started = facts(4);
  started.ranks = 5;
  TrainConfig config;
  config.cluster = "mixed.toml";
  config.scheme = "asgd";
  EXPECT_EQ(resolve_config(config, started).workers, 4U);
  config.scheme = "ssgd";
  EXPECT_EQ(refusal([&] { resolve_config(config, started); }),
            "5 ranks were started, but mixed.toml has 4 devices; start 4");
}

TEST(ResolveConfig, StepsAreSmallerWhereEachGradientIsOne) {
  const ConfigFacts facts{
      .devices = {}, .usual_learning_rate = [](Optimizer) { return 0.07; }, .time = "now"};
  TrainConfig config;
  config.workers = 4;
  config.scheme = "asgd";
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.01);
  config.scheme = "easgd";
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.07);
  EXPECT_EQ(value_of(resolve_config(config, facts), "moving-rate"), "0.225");
  config.workers = 1;
  config.scheme = "hogwild";
  EXPECT_DOUBLE_EQ(*resolve_config(config, facts).learning_rate, 0.07);
}

TEST(ResolveConfig, GivesASchemeItsServers) {
  const ConfigFacts facts{.devices = {}, .usual_learning_rate = {}, .time = "now"};
  TrainConfig config;
  EXPECT_EQ(resolve_config(config, facts).servers, 0U);
  set(config, "aggregate", "server");
  EXPECT_EQ(resolve_config(config, facts).servers, 1U);
  config.scheme = "ssp";
  config.servers = 3;
  EXPECT_EQ(resolve_config(config, facts).servers, 3U);
  config.scheme = "hogwild";
  EXPECT_THROW(resolve_config(config, facts), ConfigError);
}

}  // namespace
}  // namespace syncopate
