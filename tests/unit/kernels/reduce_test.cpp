// Goal:   the vectorised kernels give the results of a plain loop, for every length and alignment;
//         all_finite finds a single value that is not finite at any index, and reports no other.
// Method: lengths 0 to 70 at offsets 0 to 3 are compared bit for bit. Each special value is at
//         every index of short vectors at every alignment, and at random indices of long vectors,
//         on every instruction set of this CPU; the values outside the span are not finite.

#include "kernels/reduce.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <limits>
#include <vector>

#include "base/random.hpp"

namespace syncopate {
namespace {

TEST(Reduce, AddsAndScalesLikeAPlainLoop) {
  for (std::size_t length = 0; length <= 70; ++length) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
      std::vector<float> into(length + 4, 0.5F);
      std::vector<float> from(length + 4);
      for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = 0.1F * static_cast<float>(i);
      }
      add(std::span(into).subspan(offset, length), std::span(from).subspan(offset, length));
      scale(std::span(into).subspan(offset, length), 3.0F);
      scale_and_add(std::span(into).subspan(offset, length), 2.0F,
                    std::span(from).subspan(offset, length));
      for (std::size_t i = 0; i < into.size(); ++i) {
        const bool inside = i >= offset && i < offset + length;
        const float scaled = (0.5F + from[i]) * 3.0F;
        ASSERT_FLOAT_EQ(into[i], inside ? scaled * 2.0F + from[i] : 0.5F) << i << " of " << length;
      }
    }
  }
}

using Limits = std::numeric_limits<float>;

constexpr float special[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                             -Limits::quiet_NaN()};
constexpr float ordinary[] = {
    0.0F, -0.0F, 1.0F, Limits::max(), Limits::lowest(), Limits::denorm_min(), -1e-30F, 1e30F};

std::vector<float> ordinary_values(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(ordinary[i % std::size(ordinary)]);
  return values;
}

void expect_found(std::vector<float>& values, std::span<const float> looked_at, std::size_t index) {
  const float kept = values[index];
  for (const float value : special) {
    values[index] = value;
    ASSERT_FALSE(all_finite(looked_at)) << value << " at " << index << " of " << looked_at.size();
  }
  values[index] = kept;
}

void expect_all_indices_of_short_vectors() {
  for (std::size_t length = 0; length <= 70; ++length) {
    for (std::size_t offset = 1; offset <= 4; ++offset) {
      std::vector<float> values = ordinary_values(length + offset + 1);
      values[offset - 1] = Limits::quiet_NaN();
      values[offset + length] = Limits::infinity();
      const auto looked_at = std::span<const float>(values).subspan(offset, length);
      ASSERT_TRUE(all_finite(looked_at)) << offset << " " << length;
      for (std::size_t i = 0; i < length; ++i) expect_found(values, looked_at, offset + i);
    }
  }
}

void expect_random_indices_of_long_vectors(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> values = ordinary_values(1 + random.below(50'000));
    ASSERT_TRUE(all_finite(values));
    expect_found(values, values, random.below(values.size()));
  }
}

TEST(Finite, FindsEveryValueThatIsNotFinite) {
  std::int64_t targets = hwy::SupportedTargets();
  for (; targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    expect_all_indices_of_short_vectors();
    expect_random_indices_of_long_vectors(11);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace syncopate
