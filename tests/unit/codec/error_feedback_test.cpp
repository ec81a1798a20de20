// Goal:   with error feedback no value is lost in the long run: the sent values plus the remembered
//         errors equal all values; gradient descent reaches the uncompressed loss; a failed attempt
//         changes nothing.
// Method: sums over many rounds of random vectors (seed printed), a convex problem with a known
//         minimum, and frames of repeated attempts.

#include "codec/error_feedback.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "codec/codec_frame.hpp"

namespace syncopate {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;
using Commits = ErrorFeedback::Commits;

constexpr std::uint64_t seed = 12;

Floats random_values(std::size_t count, std::uint64_t which) {
  Random random = Random(seed).fork("values", which);
  Floats values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal());
  }
  return values;
}

Floats sent_by(ErrorFeedback& feedback, const Floats& values, float factor = 1,
               std::size_t first = 0) {
  Bytes frame(frame_bytes(feedback.codec(), values.size()));
  Floats decoded(values.size());
  feedback.encode(values, factor, first, frame, decoded);
  Floats by_others(values.size());
  decode_frame(feedback.codec(), frame, by_others);
  EXPECT_EQ(decoded, by_others);
  return decoded;
}

class Feedback : public testing::TestWithParam<std::string> {
 protected:
  Compression compression_ = Compression::parse(GetParam());
};

TEST_P(Feedback, SentAndRememberedMakeUpAll) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  constexpr std::size_t count = 70'000;
  ErrorFeedback feedback(compression_);
  feedback.reserve(count);
  std::vector<double> all(count);
  std::vector<double> sent(count);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Floats values = random_values(count, round);
    const Floats decoded = sent_by(feedback, values, 0.5F);
    for (std::size_t i = 0; i < count; ++i) {
      all[i] += 0.5 * values[i];
      sent[i] += decoded[i];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_NEAR(sent[i] + feedback.residual()[i], all[i], 1e-3) << i;
  }
}

TEST_P(Feedback, ReachesTheMinimumOfAConvexProblem) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  // f(w) = ½ Σ h_i (w_i - x_i)², with h from 0.1 to 1; without feedback topk and onebit do not
  // reach its minimum.
  constexpr std::size_t count = 400;
  const Floats minimum = random_values(count, 99);
  ErrorFeedback feedback(compression_);
  feedback.reserve(count);
  Floats weights(count, 0);
  double loss = 0;
  const auto gradient_of = [&](std::size_t i) {
    const float curvature = 0.1F + 0.9F * static_cast<float>(i) / count;
    return curvature * (weights[i] - minimum[i]);
  };
  for (int step = 0; step < 6000; ++step) {
    Floats gradient(count);
    loss = 0;
    for (std::size_t i = 0; i < count; ++i) {
      gradient[i] = gradient_of(i);
      loss += 0.5 * gradient[i] * (weights[i] - minimum[i]);
    }
    const Floats decoded = sent_by(feedback, gradient);
    for (std::size_t i = 0; i < count; ++i) {
      weights[i] -= 0.02F * decoded[i];
    }
  }
  EXPECT_LT(loss / count, 1e-6);
}

TEST_P(Feedback, BeginsAnAttemptWhereTheLastCommitWas) {
  constexpr std::size_t count = 5000;
  ErrorFeedback feedback(compression_, Commits::deferred);
  feedback.reserve(count);
  sent_by(feedback, random_values(count, 1));
  feedback.commit();
  const Floats values = random_values(count, 2);
  const Floats first = sent_by(feedback, values);
  EXPECT_EQ(sent_by(feedback, values), first) << "a failed attempt has changed nothing";
  feedback.commit();
  EXPECT_NE(sent_by(feedback, values), first);
}

TEST_P(Feedback, TakesEachPartByItself) {
  constexpr std::size_t count = 3000;
  const Floats values = random_values(count, 3);
  ErrorFeedback feedback(compression_);
  feedback.reserve(2 * count);
  sent_by(feedback, values, 1, count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(feedback.residual()[i], 0);
  }
  ErrorFeedback alone(compression_);
  alone.reserve(count);
  sent_by(alone, values);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(feedback.residual()[count + i], alone.residual()[i]);
  }
}

TEST_P(Feedback, ACommitLeavesTheErrorsOfPartsThatWereNotSent) {
  constexpr std::size_t count = 3000;
  ErrorFeedback feedback(compression_, Commits::deferred);
  feedback.reserve(2 * count);
  sent_by(feedback, random_values(2 * count, 1));
  feedback.commit();
  for (const std::size_t first : {std::size_t{0}, count}) {
    const Floats before(feedback.residual().begin(), feedback.residual().end());
    sent_by(feedback, random_values(count, 2 + first), 1, first);
    feedback.commit();
    const auto other = static_cast<std::ptrdiff_t>(count - first);
    EXPECT_TRUE(std::equal(before.begin() + other, before.begin() + other + count,
                           feedback.residual().begin() + other));
    EXPECT_FALSE(std::ranges::equal(before, feedback.residual()));
  }
  const Floats before(feedback.residual().begin(), feedback.residual().end());
  feedback.commit();
  EXPECT_TRUE(std::ranges::equal(before, feedback.residual())) << "nothing was sent";
}

TEST_P(Feedback, ForgetsValuesThatAreNotFinite) {
  Floats values = random_values(4000, 4);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  ErrorFeedback feedback(compression_);
  feedback.reserve(values.size());
  Bytes frame(frame_bytes(feedback.codec(), values.size()));
  Floats decoded(values.size());
  feedback.encode(values, 1, 0, frame, decoded);
  EXPECT_TRUE(std::isnan(decoded[7]));
  for (const float each : feedback.residual()) {
    ASSERT_TRUE(std::isfinite(each));
  }
}

TEST_P(Feedback, ReportsItsRatioAndError) {
  constexpr std::size_t count = 65'536;
  ErrorFeedback feedback(compression_);
  feedback.reserve(count);
  EXPECT_EQ(feedback.stats().ratio(), 0);
  const Floats values = random_values(count, 5);
  const Floats decoded = sent_by(feedback, values);
  double lost = 0;
  double all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lost += std::pow(double{values[i]} - decoded[i], 2);
    all += std::pow(double{values[i]}, 2);
  }
  EXPECT_NEAR(feedback.stats().error(), std::sqrt(lost / all), 1e-5);
  EXPECT_DOUBLE_EQ(feedback.stats().ratio(),
                   4.0 * count / static_cast<double>(frame_bytes(feedback.codec(), count)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Feedback,
                         testing::Values("bf16", "fp16", "int8", "onebit", "topk:0.05"),
                         [](const auto& info) { return info.param.substr(0, 4); });

}  // namespace
}  // namespace syncopate
