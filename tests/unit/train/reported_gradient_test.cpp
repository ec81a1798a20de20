// Goal:   a gradient that a program reports in parts reaches a sink whole, each value once.
// Method: random parts of random gradients, in random order, of which some are missing; closed
//         values for what is refused.
#include "train/reported_gradient.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;

/// Counts how often it gets each value.
class Counts final : public GradientSink {
 public:
  explicit Counts(std::size_t size) : values(size, 0) {}
  void ready(std::size_t begin, std::size_t end) override {
    for (std::size_t i = begin; i < end; ++i) ++values.at(i);
  }
  std::vector<int> values;
};

TEST(ReportedGradient, PassesOnEachValueOnce) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return random() % end; };
    const std::size_t size = 1 + below(50);
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t end = begin + 1 + below(size - begin);
      parts.emplace_back(begin, end);
      begin = end;
    }
    std::shuffle(parts.begin(), parts.end(), random);
    parts.resize(below(parts.size() + 1));
    Counts sink(size);
    ReportedGradient gradient(sink, size);
    for (const auto& [begin, end] : parts) {
      gradient.ready(begin, end);
      EXPECT_EQ(sink.values[begin], 1);  // at once
    }
    gradient.report_rest();
    EXPECT_THAT(sink.values, Each(1));
  }
}

TEST(ReportedGradient, RefusesValuesThatItHasOrThatDoNotExist) {
  Counts sink(10);
  ReportedGradient gradient(sink, 10);
  gradient.ready(2, 5);
  gradient.ready(7, 7);  // nothing
  EXPECT_THROW(gradient.ready(4, 6), ConfigError);
  EXPECT_THROW(gradient.ready(0, 3), ConfigError);
  EXPECT_THROW(gradient.ready(3, 4), ConfigError);
  EXPECT_THROW(gradient.ready(0, 10), ConfigError);
  EXPECT_THROW(gradient.ready(8, 11), ConfigError);
  EXPECT_THROW(gradient.ready(6, 5), ConfigError);
  EXPECT_THAT(sink.values, ElementsAre(0, 0, 1, 1, 1, 0, 0, 0, 0, 0));
  gradient.ready(0, 2);
  gradient.ready(5, 10);
  EXPECT_THAT(sink.values, Each(1));
}

}  // namespace
}  // namespace syncopate
