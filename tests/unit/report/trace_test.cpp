// Goal:   the trace of a run is true: a process for each member, slices that do not overlap and
//         together last the seconds in the worker's log, an arrow for each synchronization, the
//         pacer's decisions, changes of the members, counters; and it can be made from the spans of
//         a killed job.
// Method: whole jobs of logistic regression in the simulator, whose time is exact; the test reads
//         the file as a viewer does. Hand-made spans of members with different clocks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/machine.hpp"
#include "report/trace_merge.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

constexpr const char* unequal =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "4.0\n";

TrainConfig traced(const std::string& scheme, TraceDetail detail) {
  TrainConfig config = toy_config(fresh_folder("trace-" + scheme));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, unequal);
  config.epochs = 1;
  config.trace = detail;
  set(config, "local-steps", 3);
  set(config, "server-learning-rate", *config.learning_rate);
  return config;
}

/// Returns a job on a network on which the transfer of a model takes a part of a second.
SimulatedJob traced_job(const TrainConfig& config) {
  return toy_job(config, /*resume=*/false, {.link = {.bandwidth = 1e6, .latency = 5ms}});
}

std::string inflated(const std::filesystem::path& path) {
  const gzFile file = ::gzopen(path.c_str(), "rb");
  std::string text;
  std::array<char, 4096> part{};
  for (int read = 0; (read = ::gzread(file, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(read));
  }
  EXPECT_EQ(::gzclose(file), Z_OK);
  return text;
}

/// The events of a trace, by process and thread.
struct Trace {
  using Track = std::pair<int, int>;

  explicit Trace(const RunFolder& folder) : whole(Json::parse(inflated(folder.trace()))) {
    for (const Json& event : whole.at("traceEvents")) {
      const std::string kind = event.at("ph");
      const int process = event.at("pid");
      if (kind == "M" && event.at("name") == "process_name") {
        processes[event.at("args").at("name")] = process;
      } else if (kind == "M" && event.at("name") == "thread_name") {
        threads[{process, event.at("tid")}] = event.at("args").at("name");
      } else if (kind == "X") {
        slices[{process, event.at("tid")}].push_back(event);
      } else if (kind == "s" || kind == "f") {
        flows[event.at("id").get<std::uint64_t>()].push_back(event);
      } else if (kind == "i") {
        instants[threads.at({process, event.at("tid")})].push_back(event);
      } else if (kind == "C") {
        counters.insert(event.at("name").get<std::string>());
      }
    }
  }

  int process(const std::string& beginning) const {
    for (const auto& [name, number] : processes) {
      if (name.starts_with(beginning)) {
        return number;
      }
    }
    ADD_FAILURE() << "no process " << beginning;
    return 0;
  }
  Track track(const std::string& process_name, const std::string& thread) const {
    const int number = process(process_name);
    for (const auto& [track, name] : threads) {
      if (track.first == number && name == thread) {
        return track;
      }
    }
    ADD_FAILURE() << process_name << " has no thread " << thread;
    return {};
  }
  const std::vector<Json>& on(const Track& track) const {
    static const std::vector<Json> none;
    const auto found = slices.find(track);
    return found == slices.end() ? none : found->second;
  }
  /// Returns true if a slice of the track is in progress at this moment.
  bool is_busy(const Track& track, double moment) const {
    return std::ranges::any_of(on(track), [&](const Json& slice) {
      const double begin = slice.at("ts");
      return begin <= moment && moment <= begin + slice.at("dur").get<double>();
    });
  }
  std::vector<std::string> names_of(const std::string& thread) const {
    std::vector<std::string> names;
    for (const Json& instant : instants.at(thread)) {
      names.push_back(instant.at("name"));
    }
    return names;
  }

  Json whole;
  std::map<std::string, int> processes;
  std::map<Track, std::string> threads;
  std::map<Track, std::vector<Json>> slices;
  std::map<std::uint64_t, std::vector<Json>> flows;
  std::map<std::string, std::vector<Json>> instants;
  std::set<std::string> counters;
};

void expect_no_overlap(std::vector<Json> slices) {
  std::ranges::sort(slices, {}, [](const Json& slice) { return slice.at("ts").get<double>(); });
  for (std::size_t next = 1; next < slices.size(); ++next) {
    const Json& slice = slices[next - 1];
    const double end = slice.at("ts").get<double>() + slice.at("dur").get<double>();
    EXPECT_LE(end, slices[next].at("ts").get<double>() + 1e-3) << slice << slices[next];
  }
}

Json last_line_of(const RunFolder& folder, Rank rank) {
  std::istringstream lines(read_file(folder.worker_log(rank)));
  Json last;
  for (std::string line; std::getline(lines, line);) {
    last = Json::parse(line);
  }
  return last;
}

/// Returns the total seconds of the slices up to a round.
double seconds_until(const std::vector<Json>& slices, std::uint64_t round) {
  double sum = 0;
  for (const Json& slice : slices) {
    sum += slice.at("args").at("round") <= round ? slice.at("dur").get<double>() : 0;
  }
  return sum * 1e-6;
}

void expect_true_trace(const TrainConfig& config) {
  traced_job(config).run();
  const RunFolder folder(config.run_dir);
  const Trace trace(folder);
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    const std::string name = "worker " + std::to_string(rank) + ": ";
    for (const char* thread : {"compute", "communication", "wait", "loader"}) {
      expect_no_overlap(trace.on(trace.track(name, thread)));
    }
    const auto computing = trace.on(trace.track(name, "compute"));
    const Json last = last_line_of(folder, Rank{rank});
    EXPECT_NEAR(seconds_until(computing, last.at("round")), last.at("compute_seconds"), 1e-6);
  }
}

TEST(Trace, AddsUpToTheLogsOfTheWorkers) {
  for (const char* scheme : {"ssgd", "local-sgd", "esync", "nbssgd", "asgd", "downpour"}) {
    for (const TraceDetail detail : {TraceDetail::rounds, TraceDetail::steps}) {
      SCOPED_TRACE(scheme);
      expect_true_trace(traced(scheme, detail));
    }
  }
}

TEST(Trace, HasAnArrowFromEachArrivalToTheEndOfItsRound) {
  for (const char* scheme : {"ssgd", "local-sgd", "asgd"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = traced(scheme, TraceDetail::rounds);
    traced_job(config).run();
    const Trace trace(RunFolder(config.run_dir));
    EXPECT_GE(trace.flows.size(), 12U);
    for (const auto& [id, ends] : trace.flows) {
      ASSERT_EQ(ends.size(), 2U) << id;
      const auto& [start, finish] = std::pair(ends[0], ends[1]);
      EXPECT_EQ(start.at("ph"), "s");
      EXPECT_EQ(finish.at("ph"), "f");
      EXPECT_EQ(start.at("pid"), finish.at("pid"));
      EXPECT_LT(start.at("ts"), finish.at("ts"));
      for (const Json& end : ends) {
        EXPECT_TRUE(trace.is_busy({end.at("pid"), end.at("tid")}, end.at("ts"))) << end;
      }
    }
  }
}

/// An arrow leads from the contribution to the result, also if workers compute during the round.
TEST(Trace, HasAnArrowForEachRoundOfEachWorker) {
  for (const char* scheme : {"ssgd", "local-sgd", "esync", "nbssgd"}) {
    for (const TraceDetail detail : {TraceDetail::rounds, TraceDetail::steps}) {
      SCOPED_TRACE(scheme);
      const TrainConfig config = traced(scheme, detail);
      SimulatedJob job = traced_job(config);
      job.run();
      const Trace trace(RunFolder(config.run_dir));
      const auto rounds = job.summary().at("rounds").get<std::size_t>();
      EXPECT_GT(rounds, 3U);
      EXPECT_EQ(trace.flows.size(), rounds * config.workers);
      for (const auto& [id, ends] : trace.flows) {
        ASSERT_EQ(ends.size(), 2U) << id;
        EXPECT_LT(ends[0].at("ts"), ends[1].at("ts"));
        for (const Json& end : ends) {
          EXPECT_TRUE(trace.is_busy({end.at("pid"), end.at("tid")}, end.at("ts"))) << end;
        }
      }
    }
  }
}

TEST(Trace, ShowsTheStepsOfARoundIfItIsAskedTo) {
  const TrainConfig config = traced("ssgd", TraceDetail::steps);
  traced_job(config).run();
  const Trace trace(RunFolder(config.run_dir));
  const auto slices = trace.on(trace.track("worker 2: ", "compute"));
  ASSERT_GE(slices.size(), 2U);
  EXPECT_EQ(slices[0].at("name"), "forward");
  EXPECT_EQ(slices[1].at("name"), "backward");
  EXPECT_NEAR(slices[0].at("dur"), 4e6 / 3, 1);
  EXPECT_NEAR(slices[1].at("dur"), 8e6 / 3, 1);
  EXPECT_EQ(slices[0].at("args"), (Json{{"round", 1}, {"steps", 1}, {"samples", 16}}));
}

TEST(Trace, NamesProcessesMembersDecisionsAndClocks) {
  const TrainConfig config = traced("esync", TraceDetail::rounds);
  traced_job(config).run();
  const Trace trace(RunFolder(config.run_dir));
  EXPECT_TRUE(trace.processes.contains("worker 0: fast (emulated) on sim"));
  EXPECT_TRUE(trace.processes.contains("worker 2: slow (emulated) on sim"));
  EXPECT_TRUE(trace.processes.contains("coordinator"));
  EXPECT_THAT(trace.names_of("members"),
              IsSupersetOf({"worker 0 joined", "worker 2 joined", "worker 1 left"}));
  EXPECT_THAT(trace.names_of("evaluations"), IsSupersetOf({"evaluation", "checkpoint"}));
  EXPECT_THAT(trace.instants.at("pacer").front().at("name").get<std::string>(),
              HasSubstr("worker"));
  EXPECT_THAT(trace.counters, IsSupersetOf({"throughput", "loss", "traffic bytes", "bytes sent"}));
  for (const Json& clock : trace.whole.at("otherData").at("clocks")) {
    EXPECT_EQ(clock.at("offset_seconds"), 0) << clock;
    EXPECT_EQ(clock.at("residual_skew_seconds"), 0) << clock;
  }
}

TEST(Trace, HasTheServerAndTheWorkerThatWasLost) {
  const TrainConfig config = traced("asgd", TraceDetail::rounds);
  SimulatedJob job = traced_job(config);
  job.simulation().at(TimePoint(12s),
                      [&job] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{1})); });
  job.run();
  const Trace trace(RunFolder(config.run_dir));
  EXPECT_TRUE(trace.processes.contains("server 0: simulated on sim"));
  EXPECT_THAT(trace.names_of("members"), Contains("worker 1 lost"));
  EXPECT_THAT(trace.counters, Contains("updates"));
}

TEST(Trace, IsNotWrittenWhereItIsOff) {
  const TrainConfig config = traced("ssgd", TraceDetail::off);
  traced_job(config).run();
  const RunFolder folder(config.run_dir);
  EXPECT_FALSE(std::filesystem::exists(folder.spans()));
  EXPECT_FALSE(std::filesystem::exists(folder.trace()));
  EXPECT_THROW(merge_trace(folder), DataError);
}

TEST(Trace, IsMadeOfWhatAKilledJobHasLeft) {
  const TrainConfig config = traced("ssgd", TraceDetail::rounds);
  traced_job(config).run();
  const RunFolder folder(config.run_dir);
  const auto spans = folder.spans_of("worker", Rank{1});
  const std::string text = read_file(spans);
  write_file(spans, text.substr(0, text.size() / 2));
  std::filesystem::remove(folder.trace());
  EXPECT_EQ(merge_trace(folder).processes, 4U);
  const Trace trace(folder);
  const auto cut = trace.on(trace.track("worker 1: ", "compute")).size();
  EXPECT_GT(cut, 0U);
  EXPECT_LT(cut, trace.on(trace.track("worker 0: ", "compute")).size());
}

/// Writes the spans of a coordinator that began at 100 s of its clock, and of a worker with one
/// slice at 207 s of the worker's clock.
RunFolder written_spans(const std::string& machine, const std::string& offset) {
  const RunFolder folder(fresh_folder("trace-clocks"));
  std::filesystem::create_directories(folder.spans());
  const Json coordinator{
      {"process", "coordinator"}, {"machine", machine_identity()}, {"clock", 100'000'000'000}};
  const Json worker{
      {"process", "worker"}, {"rank", 0}, {"machine", machine}, {"clock", 200'000'000'000}};
  const Json slice{{"slice", "compute"},
                   {"thread", "compute"},
                   {"begin", 207'000'000'000},
                   {"duration", 1'000'000'000},
                   {"round", 1},
                   {"steps", 1},
                   {"samples", 0}};
  write_file(folder.spans_of_coordinator(), coordinator.dump() + "\n" + offset + "\n");
  write_file(folder.spans_of("worker", Rank{0}), worker.dump() + "\n" + slice.dump() + "\n");
  merge_trace(folder);
  return folder;
}

TEST(Trace, ShowsProgressWhileALongOneIsWritten) {
  const RunFolder folder = written_spans(machine_identity(), "");
  const auto spans = folder.spans_of("worker", Rank{0});
  std::string text = read_file(spans);
  const std::string slice = text.substr(text.find('\n') + 1);
  for (int line = 0; line < 45'000; ++line) {
    text += slice;
  }
  write_file(spans, text);
  int calls = 0;
  EXPECT_GT(merge_trace(folder, [&] { ++calls; }).events, 45'000U);
  EXPECT_EQ(calls, 2);
}

TEST(Trace, MapsTheClockOfAnotherHostToTheCoordinators) {
  const Trace trace(written_spans(
      "another/1/2",
      R"({"clock_of": "worker", "rank": 0, "offset": 90000000000, "skew": 2000000})"));
  EXPECT_EQ(trace.on(trace.track("worker 0", "compute")).at(0).at("ts"), 17e6);
  const Json& clock = trace.whole.at("otherData").at("clocks").at(0);
  EXPECT_EQ(clock.at("offset_seconds"), 90);
  EXPECT_EQ(clock.at("residual_skew_seconds"), 0.002);
}

TEST(Trace, TakesTheClockOfTheSameKernelAsItIs) {
  const Trace trace(written_spans(
      machine_identity(),
      R"({"clock_of": "worker", "rank": 0, "offset": 90000000000, "skew": 2000000})"));
  EXPECT_EQ(trace.on(trace.track("worker 0", "compute")).at(0).at("ts"), 107e6);
}

TEST(Trace, SaysThatItDoesNotKnowTheClockOfAnotherHost) {
  const Trace trace(written_spans("another/1/2", ""));
  EXPECT_TRUE(trace.whole.at("otherData").at("clocks").at(0).at("residual_skew_seconds").is_null());
}

}  // namespace
}  // namespace syncopate
