// Goal:   the log of a long job stays small, and the log of a killed process lacks at most the last
//         second.
// Method: many entries; the file is read while its log is open, with a clock that the test moves.

#include "telemetry/span_log.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.hpp"
#include "telemetry/thinning.hpp"
#include "tests/support/manual_clock.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(Thinning, KeepsEveryEntryAtFirstAndThenAFourthAsManyEachTime) {
  Thinning thinning(8);
  std::vector<int> kept;
  for (int entry = 0; entry < 100; ++entry) {
    if (thinning.keeps_next()) {
      kept.push_back(entry);
      thinning.wrote(1);
    }
  }
  EXPECT_EQ(kept,
            (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 11, 15, 19, 23, 27, 31, 35, 39, 55, 71, 87}));
}

std::vector<SpanLog::Json> lines_of(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<SpanLog::Json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(SpanLog::Json::parse(line));
  }
  return lines;
}

TEST(SpanLog, IsWrittenOnceASecond) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "syncopate-spans" / "worker-0.jsonl";
  std::filesystem::remove_all(path.parent_path());
  ManualClock clock;
  SpanLog log(clock, path, {{"process", "worker"}},
              [](const std::string& reason) { FAIL() << reason; });
  ASSERT_EQ(lines_of(path).size(), 1U);
  EXPECT_EQ(lines_of(path).front(),
            (SpanLog::Json{{"process", "worker"}, {"clock", 1'000'000'000'000}}));
  log.slice({.thread = trace_thread::compute,
             .name = "forward",
             .begun = TimePoint(1s),
             .ended = TimePoint(3s),
             .round = 7,
             .steps = 1,
             .samples = 64});
  log.slice({.thread = trace_thread::compute,
             .name = "empty",
             .begun = TimePoint(3s),
             .ended = TimePoint(3s)});
  EXPECT_EQ(lines_of(path).size(), 1U);
  clock.advance(1s);
  log.counter("loss", TimePoint(4s), 0.5);
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], (SpanLog::Json{{"slice", "forward"},
                                     {"thread", "compute"},
                                     {"begin", 1'000'000'000},
                                     {"duration", 2'000'000'000},
                                     {"round", 7},
                                     {"steps", 1},
                                     {"samples", 64}}));
  EXPECT_EQ(lines[2], (SpanLog::Json{{"counter", "loss"}, {"at", 4'000'000'000}, {"value", 0.5}}));
}

}  // namespace
}  // namespace syncopate
