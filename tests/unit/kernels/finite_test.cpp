// Goal:   one value that is not finite is found wherever it stands, and nothing else is taken for one.
// Method: each special value at every place of short vectors at every alignment, and at random places
//         of long ones, on every instruction set that this CPU has; what stands beside is not finite.

#include "kernels/finite.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <limits>
#include <vector>

#include "base/random.hpp"

namespace syncopate {
namespace {

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

void expect_found(std::vector<float>& values, std::span<const float> looked_at, std::size_t place) {
  const float kept = values[place];
  for (const float value : special) {
    values[place] = value;
    ASSERT_FALSE(all_finite(looked_at)) << value << " at " << place << " of " << looked_at.size();
  }
  values[place] = kept;
}

void expect_all_places_of_short_vectors() {
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

void expect_random_places_of_long_vectors(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> values = ordinary_values(1 + random.below(50'000));
    ASSERT_TRUE(all_finite(values));
    expect_found(values, values, random.below(values.size()));
  }
}

TEST(Finite, FindsWhatIsNotFinite) {
  std::int64_t targets = hwy::SupportedTargets();
  for (; targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    expect_all_places_of_short_vectors();
    expect_random_places_of_long_vectors(11);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace syncopate
