// Goal:   step infos combine to a round with the total samples and loss, the longest pause, and the
//         union of all requests and gradients.
// Method: hand-made step infos.

#include "scheme/step_info_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/errors.hpp"
#include "scheme/local_rounds.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Conclude, AddsSamplesAndLossAndTakesTheLongestPause) {
  const SyncRound sync_round = combine_step_infos({{.samples = 64, .loss_sum = 10, .paused = 1s},
                                                   {.samples = 32, .loss_sum = 5, .paused = 3s},
                                                   {.samples = 0, .loss_sum = 0, .paused = 2s}});
  EXPECT_EQ(sync_round.samples, 96U);
  EXPECT_EQ(sync_round.loss_sum, 15);
  EXPECT_EQ(sync_round.paused, Duration(3s));
  EXPECT_EQ(sync_round.agreed, StepRequests{});
}

TEST(Conclude, AllDoWhatOneWishes) {
  const SyncRound sync_round =
      combine_step_infos({{.requests = {.stop = true}}, {.requests = {.checkpoint = true}}});
  EXPECT_EQ(sync_round.agreed, (StepRequests{.stop = true, .evaluate = false, .checkpoint = true}));
}

GradientSet set_of(std::vector<std::uint8_t> flags) {
  return GradientSet(flags);
}

TEST(Conclude, AddsTheTensorsOfThoseWhoseGradientHasAWeight) {
  const std::vector<StepInfo> infos{{.weight = 2, .gradients = set_of({1, 0, 0, 0})},
                                    {.weight = 0, .gradients = set_of({0, 1, 0, 0})},
                                    {.weight = 1, .gradients = set_of({1, 0, 0, 1})}};
  EXPECT_EQ(combine_step_infos(infos).gradients, set_of({1, 0, 0, 1}));
  EXPECT_EQ(combine_step_infos({infos[1]}).gradients, set_of({0, 0, 0, 0}));
  EXPECT_EQ(combine_step_infos({{}, {}}).gradients, GradientSet());
}

TEST(GradientSets, TravelAsABitForEachTensor) {
  const GradientSet nine = set_of({1, 0, 1, 0, 0, 0, 0, 0, 1});
  const std::vector<std::byte> packed = nine.packed();
  EXPECT_THAT(packed, testing::ElementsAre(std::byte{0b101}, std::byte{1}));
  EXPECT_EQ(GradientSet(9, packed), nine);
  EXPECT_EQ(GradientSet(9, packed).flags(), nine.flags());
  EXPECT_EQ(GradientSet::packed_bytes(0), 0U);
  EXPECT_TRUE(GradientSet().packed().empty());
}

TEST(Conclude, EndsOnceEveryLoopHasEnded) {
  const StepInfo ended{.requests = {.place = WaitingPlace::end_of_loop()}};
  const StepInfo goes_on{.samples = 8};
  EXPECT_FALSE(combine_step_infos({ended, goes_on}).agreed.stop);
  EXPECT_FALSE(combine_step_infos({goes_on, ended}).agreed.place);
  EXPECT_TRUE(combine_step_infos({ended, ended}).agreed.stop);
}

TEST(Conclude, AgreesOnAPlaceOnceEveryWorkerWaitsThere) {
  const WaitingPlace third{.number = 3, .name = 7};
  const StepInfo waits{.requests = {.place = third}};
  const StepInfo waited{.requests = {.place = {.number = 2, .name = 7}}};
  const StepInfo ended{.requests = {.place = WaitingPlace::end_of_loop()}};
  const SyncRound round = combine_step_infos({waits, waits});
  EXPECT_EQ(round.agreed.place, third);
  EXPECT_FALSE(round.agreed.stop);
  for (const StepInfo& other : {StepInfo{.samples = 8}, waited, ended}) {
    EXPECT_FALSE(combine_step_infos({waits, other}).agreed.place);
    EXPECT_FALSE(combine_step_infos({other, waits}).agreed.place);
  }
}

std::string refusal_of(const std::vector<StepInfo>& infos) {
  try {
    expect_same_settings(infos);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SameSettings, FitToOnesThatNobodyKnows) {
  EXPECT_EQ(refusal_of({{}, {}}), "");
  EXPECT_EQ(refusal_of({{}, {.settings = {0.1, 7}}, {.settings = {0.1, 7}}, {}}), "");
}

TEST(SameSettings, AreRefusedWithTheWorkersWhoseRatesDiffer) {
  EXPECT_THAT(refusal_of({{.settings = {0.1, 7}}, {}, {.settings = {0.05, 8}}}),
              HasSubstr("the learning rate is 0.1 on worker 0 and 0.05 on worker 2"));
  EXPECT_THAT(
      refusal_of({{}, {.settings = {0.1, 7}}, {.settings = {0.1, 8}}}),
      HasSubstr("momentum, weight decay, parameter groups or another setting differs between "
                "workers 1 and 2"));
}

TEST(WeightOfChange, IsTheWorkersWeightWhereNothingIsNormalised) {
  const std::vector<StepInfo> infos{{.weight = 3}, {.weight = 5}};
  EXPECT_EQ(total_weight(infos), 8);
  EXPECT_EQ(weight_of_change(infos, infos[0]), 3);
  const std::vector<StepInfo> equal{{.weight = 0.1, .progress = 7}, {.weight = 0.7, .progress = 7}};
  EXPECT_EQ(weight_of_change(equal, equal[0]), 0.1);
}

/// FedNova (Wang et al. 2020): p = (0.2, 0.8), a = (10, 1), so the mean length is 2.8.
TEST(WeightOfChange, DividesByTheProgressBehindAChange) {
  const std::vector<StepInfo> infos{{.weight = 0.2, .progress = 10},
                                    {.weight = 0.8, .progress = 1}};
  EXPECT_DOUBLE_EQ(weight_of_change(infos, infos[0]), 0.2 * 2.8 / 10);
  EXPECT_DOUBLE_EQ(weight_of_change(infos, infos[1]), 0.8 * 2.8);
}

TEST(WeightOfChange, IsNothingForAWorkerWithoutSamples) {
  const std::vector<StepInfo> infos{{.weight = 0, .progress = 3}, {.weight = 0.5, .progress = 1}};
  EXPECT_EQ(weight_of_change(infos, infos[0]), 0);
  EXPECT_DOUBLE_EQ(weight_of_change(infos, infos[1]), 0.5);
}

/// Three steps with momentum 0.5 along a gradient of 1 have velocities 1, 1.5 and 1.75; the next
/// one has 1.875.
TEST(LocalProgress, CountsTheVelocityOfAConstantGradient) {
  LocalProgress plain({});
  LocalProgress heavy({.momentum = 0.5});
  LocalProgress nesterov({.momentum = 0.5, .nesterov = true});
  for (int step = 0; step < 3; ++step) {
    plain.on_step();
    heavy.on_step();
    nesterov.on_step();
  }
  EXPECT_EQ(plain.finish_round(), 3);
  EXPECT_EQ(heavy.finish_round(), 4.25);
  EXPECT_EQ(nesterov.finish_round(), 5.125);
  heavy.on_step();
  EXPECT_EQ(heavy.finish_round(), 1.875);
  LocalProgress resumed({.momentum = 0.5});
  resumed.resume(heavy.state());
  resumed.on_step();
  EXPECT_EQ(resumed.finish_round(), 1.9375);
}

/// The rate of a step is divided by the number of steps in the round before: by 1, 4 and 2.
TEST(LocalProgress, SharesTheRateOfARound) {
  LocalProgress progress({.shared_rate = true});
  const auto round_of = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      progress.on_step();
    }
    return progress.finish_round();
  };
  EXPECT_EQ(progress.rate_factor(), 1);
  EXPECT_EQ(round_of(4), 4);
  EXPECT_EQ(progress.rate_factor(), 0.25);
  EXPECT_EQ(round_of(2), 0.5);
  EXPECT_EQ(progress.rate_factor(), 0.5);
  EXPECT_EQ(round_of(2), 1);
  LocalProgress resumed({.shared_rate = true});
  resumed.resume(progress.state());
  EXPECT_EQ(resumed.rate_factor(), 0.5);
  EXPECT_EQ(LocalProgress({}).rate_factor(), 1);
}

}  // namespace
}  // namespace syncopate
