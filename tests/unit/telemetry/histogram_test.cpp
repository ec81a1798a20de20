// Goal:   counts, quantiles and means agree with the added values, exactly for small values and
//         within 1/32 for larger ones; memory is bounded; a histogram arrives unchanged.
// Method: random values of all sizes are compared with their sorted list; fixed values at the
//         borders of buckets.

#include "telemetry/histogram.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Bucket = Histogram::Bucket;

constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.quantile(0.5), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_THAT(histogram.parts().buckets, IsEmpty());
}

TEST(Histogram, TellsSmallValuesApart) {
  Histogram histogram;
  for (const std::uint64_t value : {3, 0, 3, 63, 3}) histogram.add(value);
  EXPECT_THAT(histogram.parts().buckets, ElementsAre(Bucket{0, 1}, Bucket{3, 3}, Bucket{63, 1}));
  EXPECT_EQ(histogram.quantile(0), 0);
  EXPECT_EQ(histogram.quantile(0.2), 0);
  EXPECT_EQ(histogram.quantile(0.21), 3);
  EXPECT_EQ(histogram.quantile(0.8), 3);
  EXPECT_EQ(histogram.quantile(0.81), 63);
  EXPECT_DOUBLE_EQ(histogram.mean(), 72.0 / 5);
}

TEST(Histogram, DividesPowersOfTwoBy32) {
  Histogram histogram;
  for (const std::uint64_t value : {64, 65, 66, 127, 128, 131, 132}) histogram.add(value);
  histogram.add(greatest);
  EXPECT_THAT(histogram.parts().buckets,
              ElementsAre(Bucket{64, 2}, Bucket{66, 1}, Bucket{126, 1}, Bucket{128, 2},
                          Bucket{132, 1}, Bucket{std::uint64_t{63} << 58, 1}));
  EXPECT_EQ(histogram.quantile(1), greatest);
}

/// Returns values of all sizes, each power of two equally likely.
std::vector<std::uint64_t> random_values(Random& random, std::size_t count) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random.bits() >> random.below(64));
  return values;
}

Histogram histogram_of(const std::vector<std::uint64_t>& values) {
  Histogram histogram;
  for (const std::uint64_t value : values) histogram.add(value);
  return histogram;
}

TEST(Histogram, KnowsQuantilesToWithinABucket) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    std::vector<std::uint64_t> values = random_values(random, 1 + random.below(500));
    const Histogram histogram = histogram_of(values);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(histogram.count(), values.size());
    EXPECT_EQ(histogram.max(), values.back());
    for (const double p : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
      const double place = std::ceil(p * static_cast<double>(values.size()));
      const std::uint64_t expected = values[static_cast<std::size_t>(std::max(0.0, place - 1))];
      const std::uint64_t found = histogram.quantile(p);
      EXPECT_LE(found, expected) << p;
      EXPECT_LE(expected - found, expected < 64 ? 0 : expected / 32) << p;
    }
  }
}

TEST(Histogram, IsBounded) {
  Random random(7);
  const Histogram histogram = histogram_of(random_values(random, 1'000'000));
  EXPECT_EQ(histogram.count(), 1'000'000);
  EXPECT_LE(histogram.parts().buckets.size(), 1920);
  EXPECT_GT(histogram.parts().buckets.size(), 1900) << "nearly all sizes were there";
}

TEST(Histogram, MergesAsIfAllHadBeenAdded) {
  Random random(8);
  std::vector<std::uint64_t> all = random_values(random, 300);
  const std::vector<std::uint64_t> more = random_values(random, 500);
  Histogram merged = histogram_of(all);
  merged.merge(histogram_of(more));
  all.insert(all.end(), more.begin(), more.end());
  const Histogram expected = histogram_of(all);
  EXPECT_EQ(merged.parts().buckets, expected.parts().buckets);
  EXPECT_EQ(merged.count(), expected.count());
  EXPECT_EQ(merged.max(), expected.max());
  EXPECT_NEAR(merged.mean(), expected.mean(), 1e-12 * expected.mean());
}

TEST(Histogram, SurvivesTheWire) {
  Random random(9);
  for (const std::size_t count : {0U, 1U, 400U}) {
    const Histogram sent = histogram_of(random_values(random, count));
    const Histogram received = Histogram::from(sent.parts());
    EXPECT_EQ(received.parts(), sent.parts());
    EXPECT_EQ(received.count(), sent.count());
    EXPECT_EQ(received.quantile(0.9), sent.quantile(0.9));
    EXPECT_EQ(received.mean(), sent.mean());
  }
}

TEST(Histogram, RefusesPartsThatNoHistogramHas) {
  const auto refused = [](const Histogram::Parts& parts) {
    EXPECT_THROW(Histogram::from(parts), ProtocolError);
  };
  refused({.buckets = {{65, 1}}, .max = 65, .sum = 65});          // no bucket begins there
  refused({.buckets = {{3, 1}, {2, 1}}, .max = 3, .sum = 5});     // descending
  refused({.buckets = {{3, 1}, {3, 1}}, .max = 3, .sum = 6});     // twice
  refused({.buckets = {{3, 0}}, .max = 3, .sum = 0});             // empty
  refused({.buckets = {{3, 1}}, .max = 4, .sum = 3});             // `max` is not the largest value
  refused({.buckets = {}, .max = 4, .sum = 0});                   // `max` without values
  refused({.buckets = {{3, 1}}, .max = 3, .sum = std::nan("")});  // no sum
  try {
    Histogram::from({.buckets = {{3, 1}}, .max = 4, .sum = 3});
  } catch (const ProtocolError& error) {
    EXPECT_STREQ(error.what(),
                 "histogram of 1 buckets, greatest value 4, sum 3: no such histogram can be made");
  }
}

}  // namespace
}  // namespace syncopate
