// Goal: the synthetic dataset is always the same, has equally many samples of each class, and is
//       neither too easy nor too hard to learn.
// Method: the test loads it twice and in parts, and classifies its test set by the nearest class
//       mean.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "data/dataset.hpp"

namespace syncopate {
namespace {

using Means = std::array<std::vector<double>, 10>;

Means class_means(const ImageSet& set) {
  const std::size_t values = set.shape.values();
  Means means;
  means.fill(std::vector<double>(values));
  for (std::size_t sample = 0; sample < set.samples(); ++sample) {
    for (std::size_t value = 0; value < values; ++value) {
      means[set.labels[sample]][value] +=
          10.0 / static_cast<double>(set.samples()) * set.pixels[sample * values + value];
    }
  }
  return means;
}

std::size_t nearest(const Means& means, const std::uint8_t* pixels) {
  double least = std::numeric_limits<double>::max();
  std::size_t nearest = 0;
  for (std::size_t label = 0; label < means.size(); ++label) {
    double distance = 0;
    for (std::size_t value = 0; value < means[label].size(); ++value) {
      const double difference = means[label][value] - pixels[value];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      nearest = label;
    }
  }
  return nearest;
}

TEST(Synthetic, IsTheSameHoweverItIsLoaded) {
  const Dataset both = make_synthetic(Which::both);
  const Dataset train = make_synthetic(Which::train);
  const Dataset test = make_synthetic(Which::test);
  EXPECT_EQ(train.train.pixels, both.train.pixels);
  EXPECT_EQ(test.test.pixels, both.test.pixels);
  EXPECT_EQ(train.test.samples() + test.train.samples(), 0U);
  EXPECT_EQ(test.train.shape, both.train.shape);
}

TEST(Synthetic, HasEveryClassEquallyOften) {
  const Dataset dataset = make_synthetic(Which::both);
  ASSERT_EQ(dataset.train.samples(), 10'000U);
  ASSERT_EQ(dataset.test.samples(), 2'000U);
  for (std::uint8_t label = 0; label < 10; ++label) {
    EXPECT_EQ(std::ranges::count(dataset.train.labels, label), 1'000);
    EXPECT_EQ(std::ranges::count(dataset.test.labels, label), 200);
  }
}

TEST(Synthetic, IsLearnableButNotTrivial) {
  const Dataset dataset = make_synthetic(Which::both);
  const Means means = class_means(dataset.train);
  std::size_t correct = 0;
  for (std::size_t sample = 0; sample < dataset.test.samples(); ++sample) {
    const auto* pixels = dataset.test.pixels.data() + sample * dataset.test.shape.values();
    correct += nearest(means, pixels) == dataset.test.labels[sample] ? 1 : 0;
  }
  const double accuracy =
      static_cast<double>(correct) / static_cast<double>(dataset.test.samples());
  EXPECT_GT(accuracy, 0.75);
  EXPECT_LT(accuracy, 0.90);
}

}  // namespace
}  // namespace syncopate
