// Goal:   the learning rate of a step follows from the samples that the whole job has trained on when
//         the step is taken: exactly at each synchronization, as speeds make likely in between.
// Method: one worker's estimate beside counts worked out by hand.

#include "train/sample_estimate.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

/// Four workers at equal pace, batches of 64: the count before a step is what sequential SGD has.
TEST(SampleEstimate, AtEqualPaceIsTheCountBeforeTheStep) {
  SampleEstimate estimate({.step_share = 0.25});
  for (int step = 0; step < 5; ++step) {
    EXPECT_DOUBLE_EQ(estimate.when_taken(64), step * 256);
    estimate.trained(64);
  }
}

TEST(SampleEstimate, IsExactAtASynchronization) {
  SampleEstimate estimate({.done = 1000, .step_share = 0.25});
  estimate.trained(64);
  estimate.synchronized(700, 0);
  EXPECT_DOUBLE_EQ(estimate.when_taken(0), 1700);
  EXPECT_DOUBLE_EQ(estimate.share(), 64.0 / 700);
}

TEST(SampleEstimate, CountsWhatWasTrainedOnWhileTheSynchronizationWasUnderWay) {
  SampleEstimate estimate({.step_share = 0.5});
  estimate.trained(64);
  estimate.trained(64);  // after it had contributed
  estimate.synchronized(128, 64);
  EXPECT_DOUBLE_EQ(estimate.when_taken(64), 128 + 128);
}

TEST(SampleEstimate, AWorkerThatBroughtNothingKeepsItsShare) {
  SampleEstimate estimate({.step_share = 0.5});
  estimate.expect_share(0.125);
  estimate.synchronized(512, 0);
  EXPECT_DOUBLE_EQ(estimate.share(), 0.125);
}

/// One device is a hundred times slower than the other. While it computes one step of 64, the other
/// takes 100; the step is taken after these, less the one that ends with it.
TEST(SampleEstimate, OfASlowDeviceHoldsWhatOthersTrainOnMeanwhile) {
  SampleEstimate slow({.step_share = 0.5});
  slow.expect_share(1.0 / 101);
  EXPECT_DOUBLE_EQ(slow.when_taken(64), 64 * 99);
  SampleEstimate fast({.step_share = 0.5});
  fast.expect_share(100.0 / 101);
  fast.trained(64 * 50);
  EXPECT_DOUBLE_EQ(fast.when_taken(64), 64 * 50 * 1.01);
}

}  // namespace
}  // namespace syncopate
