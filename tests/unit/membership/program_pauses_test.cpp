// Goal:   after the request to end, a job waits for a program that takes no step, but only for a
//         multiple of the usual time between its steps.
// Method: a StepWatch gets heartbeats with hand-made times.

#include <gtest/gtest.h>

#include <algorithm>

#include "membership/wait_policy.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{};

/// Returns the watch of a program that takes four steps, one every `pause`, and whose loop then
/// does something else until `until`.
StepWatch between_steps(Duration pause, Duration until) {
  StepWatch watch({.wait_limit = 60s}, start);
  std::uint64_t progress = 0;
  for (Duration passed{}; passed <= until; passed += 250ms) {
    wire::Heartbeat heartbeat;
    heartbeat.set_computing(true);
    heartbeat.set_program_loop(true);
    heartbeat.set_step(static_cast<std::uint64_t>(std::min<Duration::rep>(4, passed / pause)));
    heartbeat.set_progress(++progress);
    watch.on_heartbeat(heartbeat, start + passed);
  }
  return watch;
}

TEST(ProgramPauses, AreAsLongAsThoseBetweenStepsAtTheRequestedEnd) {
  EXPECT_FALSE(between_steps(500ms, 11s).stands_still_at_end(start + 11s, 1500ms));
  EXPECT_TRUE(between_steps(500ms, 12s).stands_still_at_end(start + 12s, 1500ms)) << "10 s";
  EXPECT_FALSE(between_steps(2s, 47s).stands_still_at_end(start + 47s, 1500ms));
  EXPECT_TRUE(between_steps(2s, 48s).stands_still_at_end(start + 48s, 1500ms)) << "20 times 2 s";
}

TEST(ProgramPauses, HaveNoEndWithoutARequest) {
  EXPECT_FALSE(between_steps(500ms, 1h).hangs(start + 1h));
}

}  // namespace
}  // namespace syncopate
