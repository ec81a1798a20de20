// Goal:   the limit is the floor until waits are known, then many times their median.
// Method: closed values.

#include "runtime/adaptive_limit.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(AdaptiveLimit, IsTheFloorBeforeTheFirstObservation) {
  const AdaptiveLimit limit({.floor = 7s, .factor = 20, .window = 4});
  EXPECT_EQ(limit.limit(), 7s);
  EXPECT_EQ(limit.median(), 0s);
}

TEST(AdaptiveLimit, FollowsTheMedianAndNotOneOutage) {
  AdaptiveLimit limit({.floor = 1s, .factor = 10, .window = 5});
  for (const Duration wait :
       {Duration(2s), Duration(3s), Duration(900s), Duration(2s), Duration(3s)}) {
    limit.observed(wait);
  }
  EXPECT_EQ(limit.median(), 3s);
  EXPECT_EQ(limit.limit(), 30s);
}

TEST(AdaptiveLimit, ForgetsWhatLeftTheWindow) {
  AdaptiveLimit limit({.floor = 1s, .factor = 10, .window = 3});
  for (const Duration wait :
       {Duration(50s), Duration(50s), Duration(50s), Duration(1s), Duration(1s)}) {
    limit.observed(wait);
  }
  EXPECT_EQ(limit.limit(), 10s);
}

}  // namespace
}  // namespace syncopate
