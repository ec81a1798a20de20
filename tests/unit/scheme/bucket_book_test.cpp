// Goal:   buckets cover a gradient once, from its end to its beginning, and each leaves when all of it, and of those
//         before it, is told, whatever the order in which that happens.
// Method: by hand; then thousands of random gradients, cut and told at random (seed printed), against a count of
//         values one by one.

#include "scheme/bucket_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

TEST(BucketBook, BeginsAtTheEndOfTheGradient) {
  const BucketBook book(100, 3);
  ASSERT_EQ(book.size(), 3U);
  EXPECT_EQ(book.bucket(0).begin, 66U);
  EXPECT_EQ(book.bucket(0).end, 100U);
  EXPECT_EQ(book.bucket(1).begin, 33U);
  EXPECT_EQ(book.bucket(2).begin, 0U);
  EXPECT_EQ(book.complete(), 0U);
}

TEST(BucketBook, LetsABucketLeaveAfterThoseBeforeIt) {
  BucketBook book(100, 2);
  book.told(0, 50);
  EXPECT_EQ(book.complete(), 0U);
  book.told(80, 100);
  EXPECT_EQ(book.complete(), 0U);
  book.told(50, 80);
  EXPECT_EQ(book.complete(), 2U);
  book.begin();
  EXPECT_EQ(book.complete(), 0U);
}

TEST(BucketBook, RefusesValuesThatAreToldTwice) {
  BucketBook book(100, 2);
  book.told(50, 100);
  EXPECT_THROW(book.told(40, 60), InternalError);
}

/// Cuts [0, values) at random, in random order.
std::vector<BucketBook::Bucket> random_ranges(Random& random, std::size_t values) {
  std::vector<BucketBook::Bucket> ranges;
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

/// How many buckets in a row have none of their values missing.
std::size_t complete_by_count(const BucketBook& book, const std::vector<int>& told) {
  std::size_t complete = 0;
  const auto is_complete = [&](const BucketBook::Bucket& bucket) {
    const auto* const values = told.data();
    return std::count(values + bucket.begin, values + bucket.end, 0) == 0;
  };
  while (complete < book.size() && is_complete(book.bucket(complete))) {
    ++complete;
  }
  return complete;
}

TEST(BucketBook, AgreesWithACountOfValues) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const std::size_t values = 1 + random.below(200);
    BucketBook book(values, 1 + random.below(std::min<std::size_t>(values, 9)));
    std::vector<int> told(values, 0);
    for (const auto& [begin, end] : random_ranges(random, values)) {
      book.told(begin, end);
      std::fill(told.begin() + static_cast<std::ptrdiff_t>(begin),
                told.begin() + static_cast<std::ptrdiff_t>(end), 1);
      ASSERT_EQ(book.complete(), complete_by_count(book, told));
    }
    ASSERT_EQ(book.complete(), book.size());
  }
}

}  // namespace
}  // namespace syncopate
