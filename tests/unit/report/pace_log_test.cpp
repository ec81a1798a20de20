// Goal:   the log has each decision of the pacer once, with the steps that the worker then did.
// Method: decisions and steps in the form in which a coordinator reports them; the test reads the
//         lines back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.hpp"
#include "report/run_folder.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using std::chrono::milliseconds;

std::vector<ordered_json> lines_of(const fs::path& path) {
  std::istringstream text(read_file(path));
  std::vector<ordered_json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(ordered_json::parse(line));
  }
  return lines;
}

TEST(PaceLog, WritesEachDecisionBesideWhatTheWorkerThenDid) {
  const fs::path path = fs::path(testing::TempDir()) / "syncopate-pacer.jsonl";
  PaceLog log(path, JsonLines::Mode::create, [](const std::string& reason) { FAIL() << reason; });
  const Rank worker{1};
  log.decided({.worker = worker,
               .round = 1,
               .sync_after = {},
               .step_samples = 32,
               .reason = PaceReason::resized},
              milliseconds(500));
  log.stepped(worker, {.round = 1, .steps = 1, .samples = 4});
  log.decided({.worker = worker,
               .round = 1,
               .sync_after = 2,
               .step_samples = 32,
               .reason = PaceReason::no_time_for_another},
              milliseconds(750));
  log.stepped(worker, {.round = 1, .steps = 2, .samples = 32});
  log.flush();
  EXPECT_TRUE(lines_of(path).empty()) << "what the worker does is not known yet";
  log.stepped(worker, {.round = 1, .steps = 3, .samples = 32, .synchronizes = true});
  log.decided({.worker = worker,
               .round = 2,
               .sync_after = 1,
               .step_samples = 32,
               .reason = PaceReason::slowest},
              milliseconds(1500));
  log.flush();
  const std::vector<ordered_json> first = lines_of(path);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0], ordered_json::parse(R"({"worker": 1, "round": 1, "seconds": 0.5,
      "steps_before": 0, "planned_steps": null, "step_samples": 32, "reason": "resized",
      "taken_steps": 3, "round_samples": 68})"));
  EXPECT_EQ(first[1], ordered_json::parse(R"({"worker": 1, "round": 1, "seconds": 0.75,
      "steps_before": 1, "planned_steps": 2, "step_samples": 32,
      "reason": "no time for another step", "taken_steps": 3, "round_samples": 68})"));
  log.finish();
  const std::vector<ordered_json> all = lines_of(path);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].at("reason"), "slowest");
  EXPECT_TRUE(all[2].at("taken_steps").is_null()) << "the job ended before";
}

}  // namespace
}  // namespace syncopate
