// Goal:   the coordinator waits for the last evaluations as long as the evaluator makes progress,
//         and no longer.
// Method: heartbeats with hand-made times.

#include <gtest/gtest.h>

#include "membership/liveness.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(EvaluationWait, EndsWhenTheLoneEvaluatorMakesNoProgress) {
  EvaluationWait wait(60s);
  EXPECT_FALSE(wait.is_over(false, TimePoint(1h))) << "others are still there";
  EXPECT_FALSE(wait.is_over(true, TimePoint(2h)));
  EXPECT_FALSE(wait.is_over(true, TimePoint(2h + 60s)));
  EXPECT_TRUE(wait.is_over(true, TimePoint(2h + 61s)));
}

TEST(EvaluationWait, GoesOnWithTheEvaluatorsProgress) {
  EvaluationWait wait(60s);
  EXPECT_FALSE(wait.is_over(true, TimePoint(0s)));
  wait.on_heartbeat(1, TimePoint(50s));
  EXPECT_FALSE(wait.is_over(true, TimePoint(110s)));
  wait.on_heartbeat(1, TimePoint(111s));
  EXPECT_TRUE(wait.is_over(true, TimePoint(111s))) << "a heartbeat alone is no progress";
}

}  // namespace
}  // namespace syncopate
