// Goal:   a program can interrupt its waits for other workers: while it joins, in a collective, in
//         a step and in the wait for the end, which ends the job for all workers.
// Method: two programs as threads. One interrupts its waits; the other one makes the same calls
//         only after the first has got its error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;

class InterruptionTest : public testing::Test {
 protected:
  /// Called by worker 1. Expects that `wait`, which the other worker does not join, is interrupted.
  void expect_interrupted(const std::function<void()>& wait) {
    set_interruption([] { return true; });
    EXPECT_THROW(wait(), Cancelled);
    set_interruption({});
    interrupted_.set_value();
  }
  /// Called by worker 0. Waits until worker 1 was interrupted.
  void await_interrupted() { interrupted_.get_future().wait(); }

  /// Both workers take a step. Worker 1 then calls `wait`, and worker 0 calls it after worker 1 was
  /// interrupted. Returns the errors of both.
  std::vector<std::string> run(const std::function<void(DistributedOptimizer&)>& wait) {
    return ThreadedPrograms(2).run([&](const JobEntry& entry) {
      TorchJob job = init({.entry = entry});
      Linear net;
      torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
      DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 4});
      optimizer.step();
      if (entry.rank == 1) {
        expect_interrupted([&] { wait(optimizer); });
      } else {
        await_interrupted();
        wait(optimizer);
      }
    });
  }

 private:
  std::promise<void> interrupted_;
};

TEST_F(InterruptionTest, OfAProgramThatJoins) {
  ThreadedPrograms programs(2);
  const auto errors = programs.run([this](const JobEntry& entry) {
    if (entry.rank == 1) {
      expect_interrupted([&] { init({.entry = entry}); });
    } else {
      await_interrupted();
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_F(InterruptionTest, OfACollectiveAndOfAWorkThatGoesOn) {
  const auto errors = ThreadedPrograms(2).run([this](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    std::vector<float> sum{1, 2};
    if (entry.rank == 0) {
      await_interrupted();
      job.allreduce(sum);
    } else {
      auto work = job.allreduce_async(sum);
      expect_interrupted([&] { work.wait(); });
      work.wait();
      EXPECT_EQ(sum, (std::vector<float>{2, 4}));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_F(InterruptionTest, OfAStep) {
  const auto errors = run([](DistributedOptimizer& optimizer) { optimizer.step(); });
  EXPECT_THAT(errors[0],
              HasSubstr("the program was interrupted while it waited for the other workers"));
  EXPECT_EQ(errors[1], "");
}

TEST_F(InterruptionTest, OfTheWaitForTheEnd) {
  const auto errors = run([](DistributedOptimizer& optimizer) { optimizer.finish(); });
  EXPECT_THAT(errors[0],
              HasSubstr("the program was interrupted while it waited for the other workers"));
  EXPECT_EQ(errors[1], "");
}

}  // namespace
}  // namespace syncopate::test
