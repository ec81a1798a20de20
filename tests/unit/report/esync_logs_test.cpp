// Goal:   a run converts to the logs of ESync's tools, and such logs convert to a run, with the
//         same seconds, samples and accuracies; errors name the damaged or missing log.
// Method: hand-made logs in the format of ESync's trainers; a job in the simulator, converted to
//         logs and back.

#include "report/esync_logs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "report/scoreboard.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::vector<Json> objects_at(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

Json json_at(const std::filesystem::path& path) {
  return Json::parse(read_file(path));
}

/// Writes the logs of two rounds of a worker, the first with two local iterations.
void write_logs(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "iter-1.txt",
             R"({"num_iters": 1, "time": {)"
             R"("0": {"check ready": 0.25, "get_batch": 0.5, "forward and backward": 2.0, )"
             R"("local update": 0.5}, "1": {"check ready": 0.25, "get_batch": 0.5, )"
             R"("forward and backward": 2.0, "local update": 0.5}, )"
             R"("2": {"check ready": 0.5, "global update": 3.0, "evaluation": 1.0}}, )"
             R"("num_samples": 128, "total_time": 10.0, "accuracy": 0.5})");
  write_file(folder / "iter-2.txt",
             R"({"num_iters": 2, "time": {"0": {"check ready": 1.0, "get_batch": 0.5, )"
             R"("forward and backward": 2.0, "local update": 0.5}, )"
             R"("1": {"check ready": 0.0, "global update": 1.0}}, )"
             R"("num_samples": 64, "total_time": 20.0})");
}

TEST(EsyncLogs, BecomeARun) {
  const auto folder = fresh_folder("esync-import");
  write_logs(folder / "logs" / "cloud1" / "gpu0");
  write_logs(folder / "logs" / "cloud3" / "cpu");
  const RunFolder run(folder / "run");
  const EsyncLogs imported = import_esync_logs(folder / "logs", run);
  EXPECT_EQ(imported.workers, 2U);
  EXPECT_EQ(imported.rounds, 4U);
  const auto lines = objects_at(run.worker_log(Rank{1}));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("own_steps"), 2);
  EXPECT_EQ(lines[0].at("own_samples"), 128);
  EXPECT_EQ(lines[0].at("round_samples"), 256);
  EXPECT_EQ(lines[1].at("round"), 2);
  EXPECT_EQ(lines[1].at("step"), 3);
  EXPECT_EQ(lines[1].at("samples"), 384);
  EXPECT_EQ(lines[1].at("training_seconds"), 20);
  EXPECT_EQ(lines[1].at("data_seconds"), 1.5);
  EXPECT_EQ(lines[1].at("compute_seconds"), 7.5);
  EXPECT_EQ(lines[1].at("communicate_seconds"), 4);
  EXPECT_EQ(lines[1].at("wait_seconds"), 2);
  EXPECT_EQ(lines[1].at("evaluate_seconds"), 1);
  const EvaluationResult tested = evaluation_from(objects_at(run.evaluations()).at(0));
  EXPECT_EQ(tested.accuracy, 0.5);
  EXPECT_EQ(tested.evaluation_seconds, 1);
  EXPECT_TRUE(std::isnan(tested.epoch)) << "no log has the size of the training set";
  const Json summary = json_at(run.summary());
  EXPECT_EQ(summary.at("scheme"), "esync");
  EXPECT_TRUE(summary.at("network").is_null()) << "the logs do not say";
  EXPECT_FALSE(summary.contains("traffic_bytes"));
  EXPECT_EQ(read_file(run.config()), "scheme = 'esync'\n");
  EXPECT_EQ(summary.at("throughput"), 19.2);
  EXPECT_EQ(summary.at("workers").at(0).at("device"), "cloud1/gpu0");
  EXPECT_EQ(summary.at("workers").at(0).at("computing_time_ratio"), 0.45);
  EXPECT_EQ(summary.at("workers").at(0).at("communication_ratio"), 0.2);
  EXPECT_THROW(import_esync_logs(folder / "logs", run), DataError) << "it holds a run";
}

/// Writes rounds without "global update", the form in which synchronous workers log them.
void write_rounds(const std::filesystem::path& folder, int rounds) {
  std::filesystem::create_directories(folder);
  for (int round = 1; round <= rounds; ++round) {
    write_file(folder / ("iter-" + std::to_string(round) + ".txt"),
               R"({"time": {"0": {"forward and backward": 1.0, "global aggregate": 0.5}}, )"
               R"("num_samples": 64, "total_time": 1.5})");
  }
}

TEST(EsyncLogs, AreOfTheSchemeThatTheUserNamesOrTheRoundsShow) {
  const auto folder = fresh_folder("esync-scheme");
  write_rounds(folder / "equal" / "a", 2);
  write_rounds(folder / "equal" / "b", 2);
  write_rounds(folder / "unequal" / "a", 2);
  write_rounds(folder / "unequal" / "b", 3);
  const auto imported = [&](const char* logs, const char* out, const EsyncOrigin& origin) {
    const RunFolder run(folder / out);
    import_esync_logs(folder / logs, run, origin);
    return json_at(run.summary()).at("scheme").dump() + read_file(run.config());
  };
  EXPECT_EQ(imported("equal", "1", {}), "\"ssgd\"scheme = 'ssgd'\n");
  EXPECT_EQ(imported("unequal", "2", {}), "null") << "workers went apart, by what scheme is open";
  EXPECT_EQ(imported("unequal", "3",
                     {.scheme = "asgd", .network = "resnet18-v1", .data = "c", .cluster = "x"}),
            "\"asgd\"scheme = 'asgd'\nnetwork = 'resnet18-v1'\ndata = 'c'\ncluster = 'x'\n");
}

TEST(EsyncLogs, AreRefusedByNameWhereTheyAreDamagedOrMissing) {
  const auto folder = fresh_folder("esync-damaged");
  write_logs(folder / "logs" / "cpu");
  write_file(folder / "logs" / "cpu" / "iter-2.txt", R"({"num_iters": 2, "ti)");
  const auto message = [&](const std::filesystem::path& logs) -> std::string {
    try {
      import_esync_logs(logs, RunFolder(folder / "run"));
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(folder / "logs"), HasSubstr("iter-2.txt: expected a round"));
  EXPECT_THAT(message(folder / "none"), HasSubstr("found none"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "nothing is written then";
}

TEST(EsyncLogs, RankWorkersByTheNumbersOfTheirFolders) {
  const auto folder = fresh_folder("esync-ranks");
  for (const char* name : {"worker10", "worker2", "worker01"}) {
    write_rounds(folder / "logs" / name, 1);
  }
  const RunFolder run(folder / "run");
  import_esync_logs(folder / "logs", run);
  const Json workers = json_at(run.summary()).at("workers");
  EXPECT_EQ(workers.at(0).at("device"), "logs/worker01");
  EXPECT_EQ(workers.at(1).at("device"), "logs/worker2");
  EXPECT_EQ(workers.at(2).at("device"), "logs/worker10");
}

/// Returns the message of the error that `act` throws.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

TEST(EsyncLogs, AreCheckedBeforeARunIsWritten) {
  const auto folder = fresh_folder("esync-values");
  const auto message = [&](const std::string& fields) {
    std::filesystem::create_directories(folder / "logs" / "cpu");
    write_file(folder / "logs" / "cpu" / "iter-1.txt", "{" + fields + "}");
    return refusal([&] { import_esync_logs(folder / "logs", RunFolder(folder / "run")); });
  };
  const std::string sound = R"("num_samples": 1, "total_time": 1, "time": {})";
  const std::string at = (folder / "logs" / "cpu" / "iter-1.txt").string() + ": expected ";
  EXPECT_EQ(message(R"("num_samples": -5, "total_time": 1, "time": {})"),
            at + "a count in num_samples, found -5");
  EXPECT_EQ(message(R"("num_samples": 1, "time": {})"),
            at + "a value in total_time, found no such field");
  EXPECT_EQ(message(R"("num_samples": 1, "total_time": 1, "time": {"0": {"get_batch": "x"}})"),
            at + "seconds of 0 or more in get_batch, found \"x\"");
  EXPECT_EQ(message(R"("num_samples": 1, "total_time": 1, "time": {"0": 3})"),
            at + "an object for each iteration in time, found 3");
  EXPECT_EQ(message(sound + R"(, "accuracy": null)"), at + "a number in accuracy, found null");
  EXPECT_EQ(message(sound + R"(, "evaluations": [{"round": 1}])"),
            at + "the fields of an evaluation in evaluations, found {\"round\":1}");
  EXPECT_EQ(message(sound + R"(, "run": "x")"), at + "an object in run, found \"x\"");
  EXPECT_EQ(message(sound + R"(, "run": {"virtual_time": "yes"})"),
            at + "true or false in virtual_time, found \"yes\"");
  EXPECT_EQ(message(sound + R"(, "run": {"seed = 1\nscheme": 2})"),
            at + "options of a run, each with one value in run, found 2");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_EQ(message(sound + R"(, "run": {"scheme": null, "virtual_time": null})"), "no DataError");
}

TEST(EsyncLogs, AreNotImportedIntoAnyRun) {
  const auto folder = fresh_folder("esync-there");
  write_logs(folder / "logs" / "cpu");
  std::filesystem::create_directories(folder / "run");
  write_file(folder / "run" / "config.toml", "");
  EXPECT_THAT(refusal([&] { import_esync_logs(folder / "logs", RunFolder(folder / "run")); }),
              HasSubstr("choose another --out"));
}

/// Returns a run of one worker with these lines in its log, on a host.
RunFolder logged_run(const std::filesystem::path& root, const std::string& lines,
                     const std::string& host = R"("a")") {
  std::filesystem::create_directories(root / "workers");
  std::filesystem::create_directories(root / "spans");
  write_file(root / "workers" / "0.jsonl", lines);
  write_file(root / "spans" / "worker-0.jsonl", R"({"process": "worker", "host": )" + host + "}\n");
  return RunFolder(root);
}

TEST(EsyncLogs, OfAResumedRunHaveTheSecondsOfEachRound) {
  const auto folder = fresh_folder("esync-resumed");
  const RunFolder run = logged_run(
      folder / "run",
      R"({"round": 1, "training_seconds": 5, "forward_seconds": 4.0, "wait_seconds": 1.0})"
      "\n"
      R"({"round": 2, "training_seconds": 9, "forward_seconds": 1.5, "wait_seconds": 2.5})"
      "\n");
  export_esync_logs(run, folder / "logs");
  const Json second = json_at(folder / "logs" / "a" / "worker0" / "iter-2.txt").at("time").at("0");
  EXPECT_EQ(second.at("forward and backward"), 1.5);
  EXPECT_EQ(second.at("global aggregate"), 2.5) << "all sums begin again, also a greater one";
}

TEST(EsyncLogs, AreExportedOnlyWhereThereAreNone) {
  const auto folder = fresh_folder("esync-mixed");
  const RunFolder run = logged_run(folder / "run", "{\"round\": 1, \"own_samples\": 8}\n");
  std::filesystem::create_directories(folder / "logs" / "b" / "worker1");
  write_file(folder / "logs" / "b" / "worker1" / "iter-7.txt", "{}");
  EXPECT_THAT(refusal([&] { export_esync_logs(run, folder / "logs"); }),
              testing::AllOf(HasSubstr("iter-7.txt"), HasSubstr("choose another --out")));
  EXPECT_FALSE(std::filesystem::exists(folder / "logs" / "a"));
}

TEST(EsyncLogs, AreExportedFromCheckedValues) {
  const auto folder = fresh_folder("esync-unsound");
  const auto message = [&](const std::string& lines, const std::string& host) {
    const RunFolder run = logged_run(folder / "run", lines, host);
    return refusal([&] { export_esync_logs(run, folder / "logs"); });
  };
  const std::string sound = "{\"round\": 1, \"own_samples\": 8}\n";
  EXPECT_EQ(message(sound + "{\"own_samples\": null}\n", R"("a")"),
            (folder / "run" / "workers" / "0.jsonl").string() +
                ":2: expected a count in own_samples, found null");
  EXPECT_EQ(message(sound, "null"), (folder / "run" / "spans" / "worker-0.jsonl").string() +
                                        ":1: expected text in host, found null");
  EXPECT_FALSE(std::filesystem::exists(folder / "logs"));
}

TEST(EsyncLogs, StayBelowTheFolderThatTheUserNamed) {
  const auto folder = fresh_folder("esync-host");
  const std::string line = "{\"round\": 1, \"own_samples\": 8}\n";
  export_esync_logs(logged_run(folder / "1", line, R"("../../evil")"), folder / "x" / "y");
  EXPECT_TRUE(
      std::filesystem::exists(folder / "x" / "y" / ".._.._evil" / "worker0" / "iter-1.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "evil"));
  export_esync_logs(logged_run(folder / "2", line, R"("..")"), folder / "z" / "y");
  EXPECT_TRUE(std::filesystem::exists(folder / "z" / "y" / "_" / "worker0" / "iter-1.txt"));
}

TEST(EsyncLogs, OfARunHaveItsSecondsAndAccuracies) {
  TrainConfig config = toy_config(fresh_folder("esync-export"));
  config.scheme = "local-sgd";
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  config.epochs = 1;
  config.trace = TraceDetail::rounds;  // has the name of the host
  set(config, "local-steps", 3);
  SimulatedJob job = toy_job(config);
  job.run();
  const auto out = config.run_dir / "logs";
  const RunFolder run(config.run_dir);
  write_file(run.config(), "scheme = 'local-sgd'\ncluster = 'a.toml'\nseed = 3\nmomentum = 0.9\n");
  EXPECT_EQ(export_esync_logs(run, out).workers, 3U);
  const auto lines = objects_at(run.worker_log(Rank{0}));
  const auto folder = out / "sim" / "worker0";
  const Json first = json_at(folder / "iter-1.txt");
  EXPECT_EQ(first.at("num_iters"), 1);
  EXPECT_EQ(first.at("num_samples"), 48);
  EXPECT_EQ(first.at("time").size(), 4U) << "three local iterations, and the global update";
  EXPECT_EQ(first.at("time").at("2").at("forward and backward"), 1);
  EXPECT_TRUE(first.at("time").at("3").contains("global update"));
  const std::string last_file = "iter-" + std::to_string(lines.size()) + ".txt";
  const Json last = json_at(folder / last_file);
  EXPECT_EQ(last.at("accuracy"), job.summary().at("accuracy"));
  EXPECT_FALSE(json_at(out / "sim" / "worker1" / "iter-1.txt").contains("accuracy"));

  const RunFolder back(config.run_dir / "back");
  import_esync_logs(out, back);
  const Json again = objects_at(back.worker_log(Rank{0})).back();
  EXPECT_EQ(again.at("samples"), lines.back().at("samples"));
  EXPECT_EQ(again.at("step"), lines.back().at("step"));
  EXPECT_NEAR(again.at("compute_seconds"), lines.back().at("compute_seconds"), 1e-2);
  EXPECT_NEAR(again.at("evaluate_seconds"), lines.back().at("evaluate_seconds"), 1e-2);
  EXPECT_EQ(objects_at(back.evaluations()), objects_at(run.evaluations()));
  EXPECT_EQ(json_at(back.summary()).at("scheme"), "local-sgd");
  EXPECT_EQ(read_file(back.config()), "cluster = 'a.toml'\nscheme = 'local-sgd'\nseed = 3\n");

  std::filesystem::remove(run.worker_log(Rank{0}));
  const auto fewer = config.run_dir / "fewer";
  EXPECT_EQ(export_esync_logs(run, fewer).workers, 2U) << "those behind the missing log, too";
  EXPECT_FALSE(std::filesystem::exists(fewer / "sim" / "worker0"));
  EXPECT_EQ(json_at(fewer / "sim" / "worker1" / last_file).at("accuracy"), last.at("accuracy"))
      << "the first of them has the accuracies";
}

}  // namespace
}  // namespace syncopate
