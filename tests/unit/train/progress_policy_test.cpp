// Goal:   each sync mode counts a worker's progress in its own way; the learning rate of a step
//         follows from the samples that the whole job has trained on when the step is taken:
//         exactly at each synchronization, as speeds make likely in between.
// Method: tables of standings and closed values; one worker's estimate beside counts worked out by
//         hand.

#include "train/progress_policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace syncopate {
namespace {

/// Two workers with batches of 10, of 100 samples: 5 steps an epoch, 2.5 epochs.
class ProgressPolicyTest : public testing::Test {
 protected:
  std::unique_ptr<ProgressPolicy> policy(SyncMode mode, std::optional<std::uint64_t> max_steps = {},
                                         bool own_loop = false) {
    return make_progress_policy(mode, {.feed = feed_,
                                       .samples_per_step = 20,
                                       .batch_size = 10,
                                       .train_samples = 100,
                                       .samples_to_train = 250,
                                       .epochs = 2.5,
                                       .max_steps = max_steps,
                                       .own_loop = own_loop});
  }

 private:
  const std::vector<Label> labels_ = std::vector<Label>(100, 0);
  BatchFeed feed_{Partition(labels_, {.shares = {1, 1}}), Rank{0}, {10, 10}};
};

constexpr std::array modes{SyncMode::lockstep, SyncMode::local_rounds, SyncMode::asynchronous};

TEST_F(ProgressPolicyTest, CountsByStepsOrBySamples) {
  struct Case {
    SyncMode mode;
    double steps;
    double epochs;
    double epoch_of_step;
  };
  const Standing standing{.step = 7, .samples = 60, .pending_samples = 10};
  for (const Case& each :
       {Case{SyncMode::lockstep, 7, 1.4, 1.4}, Case{SyncMode::local_rounds, 3, 0.6, 0.8},
        Case{SyncMode::asynchronous, 3.5, 0.6, 0.8}}) {
    SCOPED_TRACE(static_cast<int>(each.mode));
    const auto progress = policy(each.mode);
    EXPECT_DOUBLE_EQ(progress->steps_per_epoch(), 5);
    EXPECT_DOUBLE_EQ(progress->steps(standing), each.steps);
    EXPECT_DOUBLE_EQ(progress->epochs(standing), each.epochs);
    EXPECT_DOUBLE_EQ(progress->epoch_of_step(standing, 80), each.epoch_of_step);
  }
}

TEST_F(ProgressPolicyTest, CountsEpochsOfAProgramsLoopBySamples) {
  const auto progress = policy(SyncMode::lockstep, {}, true);
  const Standing standing{.step = 7, .samples = 60, .pending_samples = 10};
  EXPECT_DOUBLE_EQ(progress->epochs(standing), 0.6);
  EXPECT_DOUBLE_EQ(progress->epoch_of_step(standing, 80), 1.4);
}

TEST_F(ProgressPolicyTest, EndsByStepsOrBySamples) {
  struct Case {
    Standing standing;
    std::array<bool, 3> complete;  ///< by mode
  };
  for (const Case& each :
       {Case{{.step = 12, .samples = 240}, {false, false, false}},
        Case{{.step = 13, .samples = 240}, {true, false, false}},
        Case{{.step = 5, .samples = 240, .pending_samples = 10}, {false, true, true}},
        Case{{.step = 5, .samples = 250}, {false, true, true}}}) {
    for (std::size_t mode = 0; mode < modes.size(); ++mode) {
      SCOPED_TRACE(testing::Message() << "mode " << mode << ", step " << each.standing.step);
      const auto progress = policy(modes[mode]);
      EXPECT_EQ(progress->is_complete(each.standing), each.complete[mode]);
      EXPECT_EQ(progress->is_last_step(each.standing), mode == 0 && each.complete[0]);
    }
  }
}

TEST_F(ProgressPolicyTest, EndsAtTheLimitOfSteps) {
  for (const SyncMode mode : modes) {
    const auto progress = policy(mode, 6);
    EXPECT_FALSE(progress->is_complete({.step = 5}));
    EXPECT_FALSE(progress->is_last_step({.step = 5}));
    EXPECT_TRUE(progress->is_complete({.step = 6}));
    EXPECT_TRUE(progress->is_last_step({.step = 6}));
  }
}

TEST_F(ProgressPolicyTest, BeginsInTheDataWhereTheWorkerHadStopped) {
  const Standing start{.step = 7, .samples = 60};
  for (const SyncMode mode : {SyncMode::lockstep, SyncMode::asynchronous}) {
    EXPECT_EQ(policy(mode)->first_position(start, 0), (DataPosition{.batch = 7}));
    EXPECT_EQ(policy(mode)->first_position(start, 4), (DataPosition{.batch = 2, .taken = 4}));
  }
  for (const std::uint32_t step_samples : {0U, 4U}) {
    EXPECT_EQ(policy(SyncMode::local_rounds)->first_position(start, step_samples),
              (DataPosition{.batch = 3}));
  }
}

TEST_F(ProgressPolicyTest, TellsWhatWorkersAgreeOn) {
  struct Case {
    SyncMode mode;
    bool agrees_on_evaluations;
    bool pauses_clock;
    bool saves_all_workers;
    bool restarts_at_checkpoints;
    bool stops_at_once;
  };
  for (const Case& each : {Case{SyncMode::lockstep, true, true, true, false, false},
                           Case{SyncMode::local_rounds, false, false, true, true, false},
                           Case{SyncMode::asynchronous, true, true, false, false, true}}) {
    SCOPED_TRACE(static_cast<int>(each.mode));
    const ProgressPolicy::Rules rules = policy(each.mode)->rules();
    EXPECT_EQ(rules.skips_empty_batches, each.mode == SyncMode::local_rounds);
    EXPECT_EQ(rules.agrees_on_evaluations, each.agrees_on_evaluations);
    EXPECT_EQ(rules.pauses_clock, each.pauses_clock);
    EXPECT_EQ(rules.saves_all_workers, each.saves_all_workers);
    EXPECT_EQ(rules.restarts_at_checkpoints, each.restarts_at_checkpoints);
    EXPECT_EQ(rules.stops_at_once, each.stops_at_once);
  }
}

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
