// Goal:   with a lossless codec, optimizers with momentum compute the same with and without the
//         correction; the part sent ahead is not sent twice; a value that is not finite is not
//         remembered.
// Method: momentum SGD on random gradients of several ranks (seed printed), with weights that
//         change in every step, is compared with SGD on the reduced velocities; single gradients
//         are followed for many steps.

#include "codec/momentum_correction.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::Each;
using Floats = std::vector<float>;

constexpr std::uint64_t seed = 14;
constexpr std::size_t count = 1003;
constexpr double momentum = 0.9;

Floats random_values(std::uint64_t which) {
  Random random = Random(seed).fork("values", which);
  Floats values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal());
  }
  return values;
}

MomentumCorrection made(double ahead) {
  MomentumCorrection correction({.momentum = momentum, .ahead = ahead});
  correction.reserve(count);
  return correction;
}

/// Momentum SGD at rate 1, in float64.
class Model {
 public:
  void step(const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < count; ++i) {
      velocity_[i] = momentum * velocity_[i] + gradient[i];
      weights_[i] -= velocity_[i];
    }
  }

  double distance(const Model& other) const {
    double squares = 0;
    double all = 0;
    for (std::size_t i = 0; i < count; ++i) {
      squares += std::pow(weights_[i] - other.weights_[i], 2);
      all += std::pow(other.weights_[i], 2);
    }
    return std::sqrt(squares / all);
  }

 private:
  std::vector<double> velocity_ = std::vector<double>(count);
  std::vector<double> weights_ = std::vector<double>(count);
};

/// Two ranks, each with its own correction, that reduce without loss.
class TwoRanks {
 public:
  explicit TwoRanks(double ahead) : ranks_{made(ahead), made(ahead)} {}

  /// Returns the mean of the corrected gradients, reduced in two parts, the second one first.
  std::vector<double> mean_of(std::array<Floats, 2> gradients,
                              const std::array<float, 2>& factors) {
    Floats sum(count);
    for (const auto& [first, length] : parts) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        const auto part = std::span(gradients[rank]).subspan(first, length);
        ranks_[rank].to_velocity(part, factors[rank], first);
        for (std::size_t i = 0; i < length; ++i) {
          sum[first + i] += part[i];
        }
      }
      Floats same = sum;
      ranks_[0].to_gradient(std::span(sum).subspan(first, length), first);
      ranks_[1].to_gradient(std::span(same).subspan(first, length), first);
      EXPECT_EQ(sum, same);
    }
    return {sum.begin(), sum.end()};
  }

 private:
  static constexpr std::array<std::array<std::size_t, 2>, 2> parts{{{600, count - 600}, {0, 600}}};

  std::array<MomentumCorrection, 2> ranks_;
};

TEST(MomentumCorrection, IsMomentumSgdWhereNothingIsLost) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  TwoRanks ranks(0);
  Model corrected;
  Model plain;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    const std::array<Floats, 2> gradients{random_values(2 * step), random_values(2 * step + 1)};
    const float share = static_cast<float>(step % 5) / 4;  // weight of the first rank, from 0 to 1
    std::vector<double> mean(count);
    for (std::size_t i = 0; i < count; ++i) {
      mean[i] = double{share} * gradients[0][i] + (1 - double{share}) * gradients[1][i];
    }
    plain.step(mean);
    corrected.step(ranks.mean_of(gradients, {share, 1 - share}));
  }
  EXPECT_LT(corrected.distance(plain), 1e-6);
}

TEST(MomentumCorrection, IsQuasiHyperbolicByWhatGoesAhead) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  MomentumCorrection correction = made(0.3);
  std::vector<double> velocity(count);
  for (std::uint64_t step = 0; step < 50; ++step) {
    Floats values = random_values(step);
    const Floats gradient = values;
    correction.to_velocity(values, 0.5F, 0);
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = momentum * velocity[i] + 0.5 * gradient[i];
      ASSERT_NEAR(values[i], 0.7 * velocity[i] + 0.3 * 0.5 * gradient[i] / (1 - momentum), 1e-5);
    }
  }
}

TEST(MomentumCorrection, SendsNoMoreInTheLongRun) {
  for (const double ahead : {0.0, 0.3, 1.0}) {
    MomentumCorrection correction = made(ahead);
    double sent = 0;
    for (int step = 0; step < 300; ++step) {
      Floats values(count, step == 0 ? 1.0F : 0.0F);
      correction.to_velocity(values, 1, 0);
      sent += values[7];
    }
    EXPECT_NEAR(sent, 1 / (1 - momentum), 1e-4) << ahead;
  }
}

TEST(MomentumCorrection, SendsButForgetsValuesThatAreNotFinite) {
  MomentumCorrection correction = made(0.3);
  for (const float strange :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Floats values(count, strange);
    correction.to_velocity(values, 1, 0);
    EXPECT_THAT(values, Each(testing::ResultOf([](float x) { return std::isfinite(x); }, false)));
    correction.to_gradient(values, 0);
    EXPECT_THAT(values, Each(testing::ResultOf([](float x) { return std::isfinite(x); }, false)));
  }
  Floats values(count, 0.0F);
  correction.to_velocity(values, 1, 0);
  EXPECT_THAT(values, Each(0.0F));
  correction.to_gradient(values, 0);
  EXPECT_THAT(values, Each(0.0F));
}

TEST(MomentumCorrection, GoesAheadOnlyWhereMuchIsLost) {
  for (const char* const text : {"bf16", "fp16", "int8", "topk:1"}) {
    EXPECT_EQ(gradient_ahead(Compression::parse(text)), 0) << text;
  }
  EXPECT_DOUBLE_EQ(gradient_ahead(Compression::parse("onebit")), 0.3);
  EXPECT_DOUBLE_EQ(gradient_ahead(Compression::parse("topk:0.01")), 0.297);
}

}  // namespace
}  // namespace syncopate
