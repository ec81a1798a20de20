// Goal:   every command line is either parsed as its help describes or refused in one helpful line.
// Method: whole command lines through `run_cli` with handlers that record their arguments.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/handlers.hpp"
#include "spec/config_fields.hpp"
#include "spec/config_file.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class RunCliTest : public testing::Test {
 protected:
  RunCliTest() {
    std::string name = (fs::temp_directory_path() / "run_cli_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RunCliTest() override { fs::remove_all(folder_); }

  RanCommand run(const std::vector<std::string>& words) { return run_words(words, handlers_); }

  /// Returns the configuration of `syncopate train` with these options, which must be accepted.
  TrainConfig train(std::vector<std::string> options) {
    options.insert(options.begin(), "train");
    command_.reset();
    const RanCommand ran = run(options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    return command_.value_or(TrainCommand{}).request.config;
  }

  /// Returns the single line with which a command line is refused.
  std::string refusal(const std::vector<std::string>& words) {
    command_.reset();
    const RanCommand ran = run(words);
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, StartsWith("syncopate: "));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_FALSE(command_);
    return ran.err;
  }

  std::string file(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, text);
    return (folder_ / name).string();
  }

  /// Writes a key file that only its owner may read; returns its path.
  std::string key_file(const std::string& name, const std::string& key) {
    const std::string path = file(name, key);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    return path;
  }

  fs::path folder_;
  std::optional<TrainCommand> command_;
  std::optional<CoordinatorCommand> coordinator_;
  std::optional<JoinRequest> join_;
  std::optional<CompareCommand> comparison_;
  std::optional<NetworksCommand> networks_;
  Handlers handlers_{
      .train =
          [this](const TrainCommand& command) {
            command_ = command;
            return 0;
          },
      .coordinate =
          [this](const CoordinatorCommand& command) {
            coordinator_ = command;
            return 0;
          },
      .join =
          [this](const JoinRequest& command) {
            join_ = command;
            return 0;
          },
      .compare =
          [this](const CompareCommand& command) {
            comparison_ = command;
            return 0;
          },
      .bench = {},
      .doctor = {},
      .networks =
          [this](const NetworksCommand& command) {
            networks_ = command;
            return std::vector<torch_backend::NetworkFacts>{{.name = "net",
                                                             .summary = "small",
                                                             .parameters = 61706,
                                                             .buffers = 0,
                                                             .multiply_adds = 416520}};
          },
      .usual_learning_rate = [](Optimizer) { return 0.05; }};
};

TEST_F(RunCliTest, HelpsWhenAskedAndWhenNothingIsAsked) {
  for (const auto& words : std::vector<std::vector<std::string>>{{}, {"--help"}, {"-h"}}) {
    const RanCommand ran = run(words);
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("Commands:"), HasSubstr("Examples:")));
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(RunCliTest, HelpsWithEveryOptionOfTrain) {
  const RanCommand ran = run({"train", "--help"});
  EXPECT_EQ(ran.status, 0);
  for (const Field& field : train_fields()) {
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("  --{}", field.name)));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("\n{}:\n", field.group)));
  }
  for (const char* option : {"--config", "--resume", "--quiet", "--verbose", "--json"}) {
    EXPECT_THAT(ran.out, HasSubstr(option));
  }
}

TEST_F(RunCliTest, HelpFitsAPage) {
  std::istringstream lines(run({"train", "--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(RunCliTest, TakesEveryOptionOfTrain) {
  for (const Field& field : train_fields()) {
    SCOPED_TRACE(field.name);
    if (field.name == "cluster" || field.value.empty()) {
      continue;  // other tests cover the cluster file and the switches
    }
    const std::string value =
        field.value == "FOLDER" ? (folder_ / "new").string() : to_text(get_field(field, {}));
    const std::map<std::string_view, std::string> never_stays_auto{
        {"outer-optimizer", "nesterov"},  {"transport", "tcp"},    {"weights", "uniform"},
        {"drift-correction", "scaffold"}, {"local-rate", "round"}, {"global-batch", "64"},
        {"outer-average", "0.9"}};
    const auto instead = never_stays_auto.find(field.name);
    const std::string text = instead != never_stays_auto.end() ? instead->second
                             : value.empty() || value == "0"   ? "1"
                                                               : value;
    std::vector<std::string> options{fmt::format("--{}", field.name), text};
    const std::map<std::string_view, std::vector<std::string>> needs{
        {"schedule-step", {"--schedule", "step"}},
        {"schedule-factor", {"--schedule", "step"}},
        {"servers", {"--scheme", "asgd"}},
        {"server-process", {"--scheme", "asgd"}},
        {"compensation", {"--scheme", "dc-asgd"}},
        {"lambda", {"--scheme", "dc-asgd"}},
        {"max-delay", {"--scheme", "asgd"}},
        {"slack", {"--scheme", "ssp"}},
        {"backup-workers", {"--scheme", "backup", "--workers", "2"}},
        {"push-every", {"--scheme", "downpour"}},
        {"fetch-every", {"--scheme", "downpour"}},
        {"server-optimizer", {"--scheme", "downpour"}},
        {"server-learning-rate", {"--scheme", "downpour"}},
        {"local-steps", {"--scheme", "easgd"}},
        {"outer-optimizer", {"--scheme", "diloco"}},
        {"outer-momentum", {"--scheme", "diloco"}},
        {"outer-average", {"--scheme", "diloco", "--outer-optimizer", "gpa"}},
        {"outer-point", {"--scheme", "diloco", "--outer-optimizer", "gpa"}},
        {"global-lr", {"--scheme", "esync"}},
        {"pacing", {"--scheme", "esync"}},
        {"round-time", {"--scheme", "esync"}},
        {"max-period", {"--scheme", "esync"}},
        {"min-batch-size", {"--scheme", "esync"}},
        {"fragments", {"--scheme", "esync"}},
        {"pacing-margin", {"--scheme", "esync", "--pacing", "paper"}},
        {"overlap", {"--scheme", "ssgd"}},
        {"batch-norm", {"--network", "resnet18-v1"}},
        {"image-size", {"--data", "./images/"}},
        {"beta1", {"--optimizer", "adam"}},
        {"beta2", {"--optimizer", "adam"}},
        {"alpha", {"--optimizer", "rmsprop"}},
        {"epsilon", {"--optimizer", "adam"}},
        {"drift-correction", {"--scheme", "esync"}},
        {"local-rate", {"--scheme", "esync"}},
        {"mini-batches", {"--scheme", "nbssgd"}},
        {"signal", {"--scheme", "nbssgd"}},
        {"commit", {"--scheme", "nbssgd"}},
        {"through", {"--scheme", "nbssgd"}},
        {"moving-rate", {"--scheme", "easgd"}}};
    if (const auto needed = needs.find(field.name); needed != needs.end()) {
      options.insert(options.end(), needed->second.begin(), needed->second.end());
    } else if (field.name == "time-scale") {
      options.insert(options.end(), {"--cluster", file("a.toml",
                                                       "name = 'a'\n[[devices]]\n"
                                                       "name = 'd'\nseconds_per_batch = 1\n")});
    }
    EXPECT_EQ(to_text(get_field(field, train(options))), text);
  }
}

TEST_F(RunCliTest, FillsWhatIsLeftOpen) {
  const TrainConfig config = train({});
  EXPECT_EQ(config.workers, 1u);
  EXPECT_EQ(config.learning_rate, 0.05);
  EXPECT_THAT(config.run_dir.string(), testing::MatchesRegex("runs/[0-9]+-[0-9]+-ssgd-lenet5"));
  EXPECT_FALSE(command_->request.named_run_dir);
}

TEST_F(RunCliTest, PutsOptionsOverTheFileOverDefaults) {
  const std::string path = file("job.toml", "epochs = 7\nseed = 3\n");
  const TrainConfig config = train({"--seed", "4", "--config", path});
  EXPECT_EQ(config.epochs, 7);
  EXPECT_EQ(config.seed, 4u);
  EXPECT_EQ(config.batch_size, 64u);
}

TEST_F(RunCliTest, TakesTheLastOfTwo) {
  EXPECT_EQ(train({"--seed", "4", "--seed=5"}).seed, 5u);
}

TEST_F(RunCliTest, TurnsASwitchOnAndOff) {
  EXPECT_EQ(train({"--split-by-class"}).split, Split::parse("class"));
  const std::string path = file("job.toml", "split_by_class = true\n");
  EXPECT_EQ(train({"--config", path}).split, Split::parse("class"));
  EXPECT_EQ(train({"--config", path, "--split-by-class=false"}).split, Split{});
  const std::string iid = file("iid.toml", "split = 'iid'\n");
  EXPECT_EQ(train({"--config", iid, "--split-by-class"}).split, Split::parse("class"));
}

TEST_F(RunCliTest, TakesWorkersFromTheCluster) {
  const std::string path =
      file("c.toml", "name = 'c'\n[[devices]]\nname = 'd'\ncount = 3\nseconds_per_batch = 0.5\n");
  EXPECT_EQ(train({"--cluster", path}).workers, 3u);
  EXPECT_THAT(refusal({"train", "--cluster", path, "--workers", "2"}), HasSubstr("has 3 devices"));
  EXPECT_THAT(refusal({"train", "--cluster", "nowhere.toml"}), HasSubstr("no file nowhere.toml"));
}

TEST_F(RunCliTest, ReadsWhatItIsToSay) {
  train({"--quiet", "--json"});
  EXPECT_EQ(command_->request.verbosity, log::Verbosity::quiet);
  EXPECT_TRUE(command_->json);
  train({"--verbose"});
  EXPECT_EQ(command_->request.verbosity, log::Verbosity::verbose);
  EXPECT_THAT(refusal({"train", "--quiet", "--verbose"}), HasSubstr("exclude each other"));
}

TEST_F(RunCliTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal({"trian"}), "syncopate: unknown command 'trian'; did you mean 'train'?\n");
  EXPECT_EQ(refusal({"--frobnicate"}), "syncopate: unknown option --frobnicate\n");
  EXPECT_EQ(refusal({"train", "--epoch=5"}),
            "syncopate: unknown option --epoch; did you mean '--epochs'?\n");
  EXPECT_EQ(refusal({"train", "lenet5"}), "syncopate: unexpected argument 'lenet5'\n");
}

TEST_F(RunCliTest, RefusesValuesByTheNameOfTheirOption) {
  EXPECT_THAT(refusal({"train", "--scheme", "sgd"}),
              AllOf(testing::StartsWith("syncopate: --scheme: expected one of local, ssgd, "),
                    HasSubstr(", hogwild, found 'sgd'; did you mean 'ssgd'?\n")));
  EXPECT_EQ(refusal({"train", "--momentum", "-0.5"}),
            "syncopate: --momentum: expected a number from 0 and below 1, found -0.5\n");
  EXPECT_EQ(refusal({"train", "--workers", "0"}),
            "syncopate: --workers: expected a whole number from 1 to 1024, found 0\n");
  EXPECT_EQ(refusal({"train", "--seed"}), "syncopate: --seed needs a value\n");
  EXPECT_EQ(refusal({"train", "--quiet=yes"}), "syncopate: --quiet takes no value\n");
  EXPECT_THAT(refusal({"train", "--split-by-class=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(refusal({"train", "--eval-every", "often"}),
              HasSubstr("--eval-every: expected a period"));
}

TEST_F(RunCliTest, RefusesOptionsThatContradictEachOther) {
  EXPECT_THAT(refusal({"train", "--optimizer", "adam", "--momentum", "0.5"}),
              HasSubstr("--momentum has no effect"));
  EXPECT_THAT(refusal({"train", "--scheme", "local", "--workers", "2"}), HasSubstr("2 workers"));
  EXPECT_THAT(refusal({"train", "--config", "a", "--resume", "b"}),
              HasSubstr("exclude each other"));
  const auto two_splits = HasSubstr("split iid contradicts split-by-class, which is split class");
  EXPECT_THAT(refusal({"train", "--split", "iid", "--split-by-class"}), two_splits);
  EXPECT_THAT(refusal({"train", "--split-by-class", "--split", "iid"}), two_splits);
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--split-by-class", "--split", "iid"}),
              two_splits);
}

TEST_F(RunCliTest, RefusesADamagedOrMissingConfigurationFile) {
  EXPECT_THAT(refusal({"train", "--config", "nowhere.toml"}),
              HasSubstr("cannot open nowhere.toml"));
  const std::string path = file("job.toml", "seed = 1\nepoch = 2\n");
  EXPECT_EQ(refusal({"train", "--config", path}),
            fmt::format("syncopate: {}:2:1: unknown key 'epoch'; did you mean 'epochs'?\n", path));
}

TEST_F(RunCliTest, ResumesARunForLonger) {
  TrainConfig before = train({"--epochs", "2", "--workers", "3"});
  before.run_dir.clear();
  file("run/config.toml", to_toml(before));
  const std::string run_dir = (folder_ / "run").string();
  const TrainConfig config = train({"--resume", run_dir, "--epochs", "4", "--workers", "3"});
  EXPECT_TRUE(command_->request.resumed);
  EXPECT_EQ(config.epochs, 4);
  EXPECT_EQ(config.run_dir, run_dir);
  EXPECT_EQ(config.workers, 3u);
  EXPECT_EQ(refusal({"train", "--resume", run_dir, "--workers", "2"}),
            "syncopate: --workers cannot change when a run is resumed; it was 3\n");
  EXPECT_THAT(refusal({"train", "--resume", run_dir, "--run-dir", "other"}),
              HasSubstr("--run-dir cannot change"));
  EXPECT_THAT(refusal({"train", "--resume", folder_.string()}), HasSubstr("holds no run"));
  EXPECT_THAT(refusal({"train", "--resume", run_dir + "/checkpoints/round-1.safetensors"}),
              HasSubstr("which resumes from the newest checkpoint: --resume " + run_dir));
}

TEST_F(RunCliTest, CoordinatorTakesTheOptionsOfTrainAndAnAddress) {
  const std::string secret = key_file("secret", "\n open sesame, please \n");
  const RanCommand ran = run({"coordinator", "--listen", "127.0.0.1:9091", "--workers", "3",
                              "--secret", secret, "--gather-limit", "5", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(coordinator_->request.address, "127.0.0.1:9091");
  EXPECT_EQ(coordinator_->request.key, "open sesame, please");
  EXPECT_EQ(coordinator_->request.job.config.workers, 3u);
  EXPECT_EQ(coordinator_->request.job.gather_limit, std::chrono::seconds(5));
  EXPECT_TRUE(coordinator_->json);
  run({"coordinator", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(coordinator_->request.key, "");
  EXPECT_EQ(coordinator_->request.job.gather_limit, std::chrono::seconds(600));
}

TEST_F(RunCliTest, WorkersAndServersSayWhereTheyJoinAndWhatTheyExpect) {
  ASSERT_EQ(run({"worker", "--join", "127.0.0.1:9091", "--index", "2", "--threads", "3",
                 "--network", "mlp", "--quiet"})
                .status,
            0);
  EXPECT_EQ(join_->role, Role::worker);
  EXPECT_EQ(join_->address, "127.0.0.1:9091");
  EXPECT_EQ(join_->index, 2u);
  EXPECT_EQ(join_->threads, 3u);
  EXPECT_EQ(join_->verbosity, log::Verbosity::quiet);
  EXPECT_EQ(join_->given, (GivenOptions{{"network", "mlp"}, {"threads", "3"}}));
  ASSERT_EQ(run({"server", "--join", "127.0.0.1:9091"}).status, 0);
  EXPECT_EQ(join_->role, Role::server);
  EXPECT_FALSE(join_->index);
  EXPECT_EQ(join_->threads, 1u);
  EXPECT_EQ(join_->gather_limit, std::chrono::seconds(600));
}

TEST_F(RunCliTest, RefusesMistakesOfRolesByHand) {
  EXPECT_EQ(refusal({"worker"}),
            "syncopate: worker needs --join HOST:PORT, where the job's coordinator listens\n");
  EXPECT_EQ(refusal({"coordinator"}), "syncopate: coordinator needs --listen HOST:PORT\n");
  const std::vector<std::string> join{"worker", "--join", "127.0.0.1:1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), join.begin(), join.end());
    return refusal(more);
  };
  EXPECT_THAT(with({"--index", "-1"}), HasSubstr("--index: expected a whole number"));
  EXPECT_THAT(with({"--network", "lenet"}), HasSubstr("--network: expected one of"));
  EXPECT_THAT(with({"--json"}), HasSubstr("unknown option --json"));
  EXPECT_THAT(with({"--gather-limit", "0"}), HasSubstr("--gather-limit: expected seconds above 0"));
  EXPECT_THAT(with({"--gather-limit", "nan"}), HasSubstr("found 'nan'"));
  EXPECT_THAT(with({"--secret", "nowhere"}), HasSubstr("cannot open nowhere"));
  const auto with_key = [&](const std::string& path) { return with({"--secret", path}); };
  const std::string blank = key_file("blank", " \n");
  EXPECT_EQ(with_key(blank),
            fmt::format("syncopate: --secret: expected a key of 16 to 1024 bytes in {0}, found 0; "
                        "make one: syncopate key new FILE\n",
                        blank));
  EXPECT_THAT(with_key(key_file("short", "0123456789abcde\n")), HasSubstr("found 15; make one"));
  EXPECT_THAT(with_key(key_file("long", std::string(1025, 'k'))), HasSubstr("found 1025"));
  const std::string open = file("open", "0123456789abcdef\n");
  for (const auto& [permissions, mode] :
       {std::pair{fs::perms(0640), "0640"}, {fs::perms(0604), "0604"}, {fs::perms(0620), "0620"}}) {
    fs::permissions(open, permissions);
    EXPECT_EQ(with_key(open), fmt::format("syncopate: --secret: other users may read or change {0} "
                                          "(mode {1}); run: chmod 600 {0}\n",
                                          open, mode));
  }
}

TEST_F(RunCliTest, HelpsWithTheRolesByHandWithinAPage) {
  for (const char* command : {"coordinator", "worker", "server"}) {
    const RanCommand ran = run({command, "--help"});
    EXPECT_EQ(ran.status, 0);
    for (const char* option : {"--secret", "--gather-limit", "--network", "--data-dir"}) {
      EXPECT_THAT(ran.out, HasSubstr(option));
    }
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << line;
    }
  }
}

TEST_F(RunCliTest, ListsNetworksAsTableAndAsJson) {
  run({"networks", "--channels", "3", "--classes", "100"});
  EXPECT_EQ(networks_->input, (SampleShape{3, 0, 0})) << "each network's own size";
  EXPECT_EQ(networks_->classes, 100u);
  run({"networks", "--height", "224", "--width", "128"});
  EXPECT_EQ(networks_->input, (SampleShape{1, 224, 128}));
  const auto json = nlohmann::json::parse(run({"networks", "--json"}).out);
  EXPECT_EQ(json["networks"][0]["parameters"], 61706);
  EXPECT_THAT(refusal({"networks", "--height", "0"}),
              HasSubstr("--height: expected a whole number"));
}

TEST_F(RunCliTest, ListsSchemesAndItsVersion) {
  EXPECT_THAT(run({"schemes"}).out, AllOf(HasSubstr("ssgd"), HasSubstr("local")));
  EXPECT_EQ(nlohmann::json::parse(run({"schemes", "--json"}).out)["schemes"][0]["name"], "local");
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  const auto json = nlohmann::json::parse(run({"version", "--json"}).out);
  const auto libtorch = json["libtorch"].get<std::string>();
  EXPECT_EQ("syncopate " + json["version"].get<std::string>() +
                (libtorch.empty() ? ", without libtorch\n" : ", libtorch " + libtorch + "\n"),
            run({"version"}).out);
}

TEST_F(RunCliTest, PrintsTheHelpOfACommand) {
  EXPECT_EQ(run({"help", "train"}).out, run({"train", "--help"}).out);
  EXPECT_EQ(run({"help", "help"}).out, run({"help", "--help"}).out);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(refusal({"help", "trian"}),
            "syncopate: unknown command 'trian'; did you mean 'train'?\n");
  EXPECT_EQ(refusal({"help", "train", "now"}), "syncopate: unexpected argument 'now'\n");
}

TEST_F(RunCliTest, RefusesWordsBeforeACommand) {
  EXPECT_EQ(refusal({"traim", "schemes"}),
            "syncopate: unknown command 'traim'; did you mean 'train'?\n");
  EXPECT_EQ(refusal({"--workers", "2", "train"}), "syncopate: unknown option --workers\n");
  EXPECT_FALSE(command_) << "train was called";
}

TEST_F(RunCliTest, PrintsCompletionForBashAlone) {
  EXPECT_THAT(run({"completion", "bash"}).out, HasSubstr("complete -o filenames -F _syncopate"));
  EXPECT_THAT(refusal({"completion", "zsh"}), HasSubstr("found 'zsh'"));
  EXPECT_THAT(refusal({"completion"}), HasSubstr("the name of a shell"));
}

TEST_F(RunCliTest, TurnsAFailureIntoALineAndAStatus) {
  handlers_.train = [](const TrainCommand&) -> int { throw std::runtime_error("broken\nin two"); };
  const RanCommand ran = run({"train"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err, "syncopate: broken in two\n");
  handlers_.train = [](const TrainCommand&) { return 130; };
  EXPECT_EQ(run({"train"}).status, 130);
}

TEST_F(RunCliTest, ComparesWhatItsHelpSays) {
  const std::string cluster = (folder_ / "two.toml").string();
  write_file(cluster, "[[devices]]\ncount = 2\nseconds_per_batch = 0.1\n");
  const RanCommand ran =
      run({"compare", "--schemes", "ssgd,asgd", "--cluster", cluster, "--learning-rates",
           "0.01,0.1", "--batch-size=32", "--virtual-time", "--jobs", "3", "--out", "a b"});
  ASSERT_TRUE(comparison_) << ran.err;
  EXPECT_EQ(comparison_->contestants.size(), 2U);
  EXPECT_EQ(comparison_->seeds, 3U);
  EXPECT_EQ(comparison_->jobs, 3U);
  EXPECT_TRUE(comparison_->grid_in_virtual_time && comparison_->with_limit);
  EXPECT_TRUE(comparison_->with_fast);
  EXPECT_FALSE(comparison_->until_target);
  EXPECT_THAT(
      comparison_->words,
      AllOf(StartsWith("syncopate compare --schemes=ssgd,asgd "), HasSubstr(" --virtual-time --"),
            HasSubstr(" --batch-size=32 "), testing::EndsWith(" --out 'a b'")));
}

TEST_F(RunCliTest, ComparesRealDevicesWithoutALimit) {
  run({"compare", "--schemes", "ssgd", "--workers", "2"});
  ASSERT_TRUE(comparison_);
  EXPECT_FALSE(comparison_->grid_in_virtual_time || comparison_->with_limit);
  EXPECT_EQ(comparison_->contestants[0].config.batch_norm, BatchNormStatistics::recomputed);
  run({"compare", "--schemes", "ssgd", "--network", "resnet18-v1", "--batch-norm", "running"});
  EXPECT_EQ(comparison_->contestants[0].config.batch_norm, BatchNormStatistics::running);
}

TEST_F(RunCliTest, RefusesComparisonsThatSayTooLittleOrTooMuch) {
  EXPECT_THAT(refusal({"compare"}), HasSubstr("--schemes"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--seeds", "0"}), HasSubstr("1 to 9999"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--seeds", "2.5"}), HasSubstr("'2.5'"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--until-target"}),
              HasSubstr("--target-accuracy"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--grid-in", "virtual"}),
              HasSubstr("--cluster"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--virtual-time"}), HasSubstr("--cluster"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--scheme", "asgd"}),
              HasSubstr("did you mean '--schemes'?"));
  EXPECT_FALSE(comparison_);
}

}  // namespace
}  // namespace syncopate::cli
