// Goal:   a gradient that is applied as a separate update counts in proportion to its samples.
// Method: fixed values of the rule; two steps of hogwild on a quadratic loss.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheme/hogwild.hpp"
#include "scheme/scheme_spec.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(PushWeight, IsTheSamplesOverThoseThatWeighOne) {
  EXPECT_EQ(PushWeight{.unit = 48}.of(64), 64.0F / 48);
  EXPECT_EQ(PushWeight{.unit = 48}.of(12), 0.25F);
  EXPECT_EQ(PushWeight{.unit = 1}.of(7), 7.0F);
  EXPECT_EQ(PushWeight{}.of(64), 1.0F);
  EXPECT_EQ(PushWeight{}.of(1), 1.0F);
}

/// Takes two steps with momentum 0.5 and rate 0.1 from w = 0, with all samples at 8.
std::vector<float> two_steps_of_hogwild(PushWeight weight, std::uint32_t samples) {
  return on_every_rank<std::vector<float>>(1, [&](Group& group) {
    std::vector<std::byte> memory(SharedModel::bytes_for({.params = 1, .buffers = 1}));
    SharedModel model(memory, {.params = 1, .buffers = 1});
    QuadraticReplica replica({.features = 1, .classes = 1, .momentum = 0.5});
    Hogwild scheme(group.world(), model, {.self = Rank{0}, .weight = weight});
    Batch batch{.shape = {1, 1, 1}, .features = {}, .labels = {}};
    batch.features.assign(samples, 8);
    batch.labels.assign(samples, 0);
    std::vector<float> params;
    for (int step = 0; step < 2; ++step) {
      replica.backward(batch);
      scheme.after_backward(replica, {.samples = samples});
      params.push_back(replica.view(ReplicaVector::params)[0]);
    }
    return params;
  })[0];
}

TEST(Hogwild, ScalesAGradientByItsSamples) {
  // g = −8, v = −8, w = 0.8; g = −7.2, v = −11.2, w = 1.92.
  EXPECT_THAT(two_steps_of_hogwild({.unit = 4}, 4), ElementsAre(FloatEq(0.8F), FloatEq(1.92F)));
  // Halved: g = −4, v = −4, w = 0.4; g = −3.8, v = −5.8, w = 0.98.
  EXPECT_THAT(two_steps_of_hogwild({.unit = 4}, 2), ElementsAre(FloatEq(0.4F), FloatEq(0.98F)));
  EXPECT_THAT(two_steps_of_hogwild({}, 2), ElementsAre(FloatEq(0.8F), FloatEq(1.92F)));
}

}  // namespace
}  // namespace syncopate
