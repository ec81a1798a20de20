// Goal:   the augmentation of an image depends only on seed, pass and sample, draws every value
//         equally often, and moves pixels as its header says.
// Method: counts over many draws; a small image with the expected pixels.

#include "data/augmentation.hpp"

#include <gmock/gmock.h>

#include <map>

namespace syncopate {
namespace {

using testing::ElementsAre;

TEST(Augmentation, FollowsFromSeedPassAndSample) {
  const auto change = draw_change(Augmentation::crop_flip, 5, Epoch{2}, 77);
  EXPECT_EQ(draw_change(Augmentation::crop_flip, 5, Epoch{2}, 77), change);
  int others = 0;
  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    others += draw_change(Augmentation::crop_flip, 5, Epoch{3}, sample) ==
                      draw_change(Augmentation::crop_flip, 5, Epoch{2}, sample)
                  ? 0
                  : 1;
  }
  EXPECT_GT(others, 95) << "another pass has other changes";
}

TEST(Augmentation, IsUniform) {
  std::map<int, int> down;
  std::map<int, int> right;
  int mirrored = 0;
  constexpr std::uint32_t draws = 9'000;
  for (std::uint32_t sample = 0; sample < draws; ++sample) {
    const auto change = draw_change(Augmentation::crop_flip, 1, Epoch{0}, sample);
    ++down[change.down];
    ++right[change.right];
    mirrored += change.mirrored ? 1 : 0;
  }
  for (const auto& counts : {down, right}) {
    EXPECT_EQ(counts.size(), 9U);
    EXPECT_EQ(counts.begin()->first, -4);
    for (const auto& [offset, count] : counts) {
      EXPECT_NEAR(count, 1'000, 150) << offset;  // five standard deviations
    }
  }
  EXPECT_NEAR(mirrored, 4'500, 240);
}

TEST(Augmentation, DrawsTheSameForItsParts) {
  for (std::uint32_t sample = 0; sample < 50; ++sample) {
    const auto both = draw_change(Augmentation::crop_flip, 9, Epoch{1}, sample);
    EXPECT_EQ(draw_change(Augmentation::crop, 9, Epoch{1}, sample),
              (ImageChange{.down = both.down, .right = both.right}));
    EXPECT_EQ(draw_change(Augmentation::flip, 9, Epoch{1}, sample),
              (ImageChange{.mirrored = both.mirrored}));
    EXPECT_EQ(draw_change(Augmentation::none, 9, Epoch{1}, sample), ImageChange{});
  }
}

TEST(Augmentation, MovesPixelsAndFillsWithBlack) {
  const SampleShape shape{2, 2, 3};
  const std::vector<std::uint8_t> image{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  std::vector<std::uint8_t> into(12, 99);
  apply_change({.down = 1, .right = -1}, shape, image, into);
  EXPECT_THAT(into, ElementsAre(0, 4, 5, 0, 0, 0, 0, 14, 15, 0, 0, 0));
  apply_change({.mirrored = true}, shape, image, into);
  EXPECT_THAT(into, ElementsAre(3, 2, 1, 6, 5, 4, 13, 12, 11, 16, 15, 14));
  apply_change({.right = 1, .mirrored = true}, shape, image, into);
  EXPECT_THAT(into, ElementsAre(0, 3, 2, 0, 6, 5, 0, 13, 12, 0, 16, 15));
}

}  // namespace
}  // namespace syncopate
