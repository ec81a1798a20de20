// Goal:   smoothing and bands follow their formulas.
// Method: values computed by hand.
#include "cli/report/curves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::cli {
namespace {

TEST(SmoothedTest, IsTheMeanOfNeighboursAndKeepsTheEnds) {
  const Curve curve{{0, 1}, {1, 4}, {2, 1}, {3, 7}, {4, 2}};
  const Curve one = smoothed(curve, 1);
  EXPECT_EQ(one[0].y, 1);
  EXPECT_EQ(one[1].y, 2);
  EXPECT_EQ(one[2].y, 4);
  EXPECT_NEAR(one[3].y, 10.0 / 3, 1e-12);
  EXPECT_EQ(one[4].y, 2);
  EXPECT_EQ(smoothed(curve, 5)[2].y, 3);  // the window is as wide as both sides allow
  EXPECT_EQ(smoothed(curve, 0)[3].y, 7);
  EXPECT_TRUE(smoothed({}, 1).empty());
}

TEST(BandTest, IsMeanAndDeviationOnTheCommonRange) {
  // On [1, 3] the curves are 2x and x + 4. At 1, 2 and 3 their means are 3.5, 5 and 6.5, and their
  // differences 3, 2 and 1.
  const auto band = band_of({{{0, 0}, {3, 6}}, {{1, 5}, {5, 9}}, {}}, 3);
  ASSERT_EQ(band.size(), 3U);
  EXPECT_EQ(band[0].x, 1);
  EXPECT_EQ(band[1].x, 2);
  EXPECT_EQ(band[2].x, 3);
  EXPECT_NEAR(band[0].mean, 3.5, 1e-12);
  EXPECT_NEAR(band[1].mean, 5, 1e-12);
  EXPECT_NEAR(band[0].high - band[0].mean, 3 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(band[2].mean - band[2].low, 1 / std::sqrt(2), 1e-12);
}

TEST(BandTest, OfOneCurveIsThatCurve) {
  const auto band = band_of({{{0, 1}, {4, 2}}}, 80);
  ASSERT_EQ(band.size(), 2U);
  EXPECT_EQ(band[1].x, 4);
  EXPECT_EQ(band[1].low, 2);
  EXPECT_EQ(band[1].high, 2);
}

TEST(BandTest, OfCurvesThatDoNotOverlapIsEmpty) {
  EXPECT_TRUE(band_of({{{0, 1}, {1, 2}}, {{2, 1}, {3, 2}}}, 10).empty());
  EXPECT_TRUE(band_of({{}, {}}, 10).empty());
}

TEST(ValueAtTest, LiesOnTheLineBetweenTwoPoints) {
  const Curve curve{{0, 0}, {2, 4}, {3, 0}};
  EXPECT_EQ(value_at(curve, 1), 2);
  EXPECT_EQ(value_at(curve, 2), 4);
  EXPECT_EQ(value_at(curve, 2.75), 1);
  EXPECT_EQ(value_at(curve, 9), 0);
}

}  // namespace
}  // namespace syncopate::cli
