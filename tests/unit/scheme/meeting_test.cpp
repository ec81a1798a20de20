// Goal:   what follows from the cards of a meeting: sums, the longest pause, and every wish.
// Method: hand-made cards.

#include "scheme/meeting.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(Conclude, AddsSamplesAndLossAndTakesTheLongestPause) {
  const Meeting meeting = conclude({{.samples = 64, .loss_sum = 10, .paused = 1s},
                                    {.samples = 32, .loss_sum = 5, .paused = 3s},
                                    {.samples = 0, .loss_sum = 0, .paused = 2s}});
  EXPECT_EQ(meeting.samples, 96U);
  EXPECT_EQ(meeting.loss_sum, 15);
  EXPECT_EQ(meeting.paused, Duration(3s));
  EXPECT_EQ(meeting.agreed, Wishes{});
}

TEST(Conclude, AllDoWhatOneWishes) {
  const Meeting meeting = conclude({{.wishes = {.stop = true}}, {.wishes = {.checkpoint = true}}});
  EXPECT_EQ(meeting.agreed, (Wishes{.stop = true, .evaluate = false, .checkpoint = true}));
}

}  // namespace
}  // namespace syncopate
