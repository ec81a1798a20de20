// Goal:   buckets cover a gradient once, from its end to its beginning. A bucket is complete once
//         all its values and those of the buckets before it are ready, in any order of becoming
//         ready.
// Method: a hand-made case; then thousands of random gradients in random pieces (seed printed),
//         compared with a count of single values.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "scheme/bucket_reducer.hpp"

namespace syncopate {
namespace {

TEST(BucketTracker, BeginsAtTheEndOfTheGradient) {
  const BucketTracker tracker(100, 3);
  ASSERT_EQ(tracker.size(), 3U);
  EXPECT_EQ(tracker.bucket(0).begin, 66U);
  EXPECT_EQ(tracker.bucket(0).end, 100U);
  EXPECT_EQ(tracker.bucket(1).begin, 33U);
  EXPECT_EQ(tracker.bucket(2).begin, 0U);
  EXPECT_EQ(tracker.complete(), 0U);
}

TEST(BucketTracker, LetsABucketLeaveAfterThoseBeforeIt) {
  BucketTracker tracker(100, 2);
  tracker.mark_ready(0, 50);
  EXPECT_EQ(tracker.complete(), 0U);
  tracker.mark_ready(80, 100);
  EXPECT_EQ(tracker.complete(), 0U);
  tracker.mark_ready(50, 80);
  EXPECT_EQ(tracker.complete(), 2U);
  tracker.begin();
  EXPECT_EQ(tracker.complete(), 0U);
}

TEST(BucketTracker, RefusesValuesThatAreToldTwice) {
  BucketTracker tracker(100, 2);
  tracker.mark_ready(50, 100);
  EXPECT_THROW(tracker.mark_ready(40, 60), InternalError);
}

/// Cuts [0, values) at random; returns the ranges in random order.
std::vector<BucketTracker::Bucket> random_ranges(Random& random, std::size_t values) {
  std::vector<BucketTracker::Bucket> ranges;
  for (std::size_t begin = 0; begin < values;) {
    const std::size_t end = std::min(values, begin + 1 + random.below(values));
    ranges.push_back({begin, end});
    begin = end;
  }
  for (std::size_t i = ranges.size(); i > 1; --i) {
    std::swap(ranges[i - 1], ranges[random.below(i)]);
  }
  return ranges;
}

/// Returns the number of leading buckets whose values are all ready.
std::size_t complete_by_count(const BucketTracker& tracker, const std::vector<int>& mark_ready) {
  std::size_t complete = 0;
  const auto is_complete = [&](const BucketTracker::Bucket& bucket) {
    const auto* const values = mark_ready.data();
    return std::count(values + bucket.begin, values + bucket.end, 0) == 0;
  };
  while (complete < tracker.size() && is_complete(tracker.bucket(complete))) {
    ++complete;
  }
  return complete;
}

TEST(BucketTracker, AgreesWithACountOfValues) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t values = 1 + random.below(200);
    BucketTracker tracker(values, 1 + random.below(std::min<std::size_t>(values, 9)));
    std::vector<int> mark_ready(values, 0);
    for (const auto& [begin, end] : random_ranges(random, values)) {
      tracker.mark_ready(begin, end);
      std::fill(mark_ready.begin() + static_cast<std::ptrdiff_t>(begin),
                mark_ready.begin() + static_cast<std::ptrdiff_t>(end), 1);
      ASSERT_EQ(tracker.complete(), complete_by_count(tracker, mark_ready));
    }
    ASSERT_EQ(tracker.complete(), tracker.size());
  }
}

}  // namespace
}  // namespace syncopate
