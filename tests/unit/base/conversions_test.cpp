// Goal:   conversions of numbers that come from another process or a user have a defined result for
//         every number.
// Method: the ends of each range, numbers beyond them, infinities and NaN.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/time.hpp"
#include "base/whole.hpp"

namespace syncopate {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(FromSeconds, IsExactWithinItsRange) {
  EXPECT_EQ(from_seconds(0.25), std::chrono::milliseconds(250));
  EXPECT_EQ(from_seconds(-2), std::chrono::seconds(-2));
  EXPECT_EQ(from_seconds(1e8), std::chrono::seconds(100'000'000));
}

TEST(FromSeconds, EndsAtTheLongestDuration) {
  const Duration longest = from_seconds(longest_seconds);
  for (const double seconds : {1e10, 1e300, infinite}) {
    EXPECT_EQ(from_seconds(seconds), longest);
    EXPECT_EQ(from_seconds(-seconds), -longest);
  }
  EXPECT_EQ(from_seconds(nan), Duration::zero());
  EXPECT_GT(longest + longest, longest) << "a sum of two fits";
}

TEST(WholeOf, IsAWholeNumberOfAnyValue) {
  EXPECT_EQ(whole_of(41.9), 41U);
  EXPECT_EQ(whole_of(-1), 0U);
  EXPECT_EQ(whole_of(nan), 0U);
  EXPECT_EQ(whole_of(1e300), std::uint64_t{1} << 63U);
  EXPECT_EQ(whole_of(infinite), std::uint64_t{1} << 63U);
}

}  // namespace
}  // namespace syncopate
