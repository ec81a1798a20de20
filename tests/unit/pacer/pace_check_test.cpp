// Goal: a cluster is refused exactly when one worker, or all workers together, need more than the
//       machine has, and the time scale that the refusal asks for suffices.
// Method: fixed cases on either side of both limits; random clusters at the time scale that the
//         refusal advises.

#include <gmock/gmock.h>

#include <vector>

#include "base/random.hpp"
#include "pacer/pace_estimate.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

TEST(PaceCheck, AcceptsWhatFits) {
  EXPECT_EQ(pace_objection({}, 1, 1), std::nullopt);
  const PaceCost nearly_full{"worker 0", 0.0949, 0.1};
  EXPECT_EQ(pace_objection(std::vector{nearly_full}, 2, 1), std::nullopt);
  const PaceCost half{"worker 0", 0.05, 0.1};
  EXPECT_EQ(pace_objection(std::vector<PaceCost>(3, half), 2, 1), std::nullopt);
}

TEST(PaceCheck, RefusesAWorkerSlowerThanItsProfile) {
  const std::vector<PaceCost> costs{{"worker 0 (gpu)", 0.06, 0.03}, {"worker 1 (cpu)", 0.06, 3.5}};
  EXPECT_EQ(pace_objection(costs, 16, 1),
            "this machine cannot pace the emulated cluster: its 2 devices need 2.02 of 16 cores "
            "(at most 14.40); worker 0 (gpu) needs 0.06 s of CPU for a mini-batch of 0.03 s (at "
            "most 0.0285); use --time-scale 2.2 or more, fewer devices or a smaller network");
}

TEST(PaceCheck, RefusesASumBeyondTheCores) {
  // Each needs 0.5 of a core: all 4 need 2 cores of at most 1.8, so a scale of 1.12, shown as 1.2.
  const std::vector<PaceCost> costs(4, PaceCost{"worker 0", 0.01, 0.02});
  const auto objection = pace_objection(costs, 2, 1);
  ASSERT_TRUE(objection);
  EXPECT_THAT(*objection, testing::AllOf(HasSubstr("its 4 devices need 2.00 of 2 cores"),
                                         HasSubstr("--time-scale 1.2 or more")));
}

TEST(PaceCheck, AdvisesFromTheScaleInUse) {
  const std::vector<PaceCost> costs(4, PaceCost{"worker 0", 0.1, 0.2});
  EXPECT_THAT(*pace_objection(costs, 2, 10), HasSubstr("--time-scale 12 or more"));
}

double advised_scale(const std::string& objection) {
  const std::string option = "--time-scale ";
  return std::stod(objection.substr(objection.find(option) + option.size()));
}

TEST(PaceCheck, AdvisesAScaleThatSufficesAndHardlyMore) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto cores = static_cast<unsigned>(1 + random.below(8));
    std::vector<PaceCost> costs(1 + random.below(12));
    for (PaceCost& cost : costs) {
      cost = {"worker", 0.5 * random.uniform(), 0.001 + random.uniform()};
    }
    const auto objection = pace_objection(costs, cores, 1);
    if (!objection) {
      continue;
    }
    const double scale = advised_scale(*objection);
    auto stretched = costs;
    auto barely = costs;
    for (std::size_t worker = 0; worker < costs.size(); ++worker) {
      stretched[worker].budget_seconds *= scale;
      barely[worker].budget_seconds *= 0.9 * scale;
    }
    EXPECT_EQ(pace_objection(stretched, cores, scale), std::nullopt);
    EXPECT_NE(pace_objection(barely, cores, 0.9 * scale), std::nullopt);
  }
}

}  // namespace
}  // namespace syncopate
