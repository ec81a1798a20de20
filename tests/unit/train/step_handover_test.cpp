// Goal:   a program's loop and its worker take turns: the worker gets each step once, the loop goes
//         on when the worker asks again, and the end of one reaches the other.
// Method: the loop on this thread, the worker on another; each waits for the other alone.
#include "train/step_handover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/errors.hpp"
#include "tests/unit/train/thread_world.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;

class StepHandoverTest : public testing::Test {
 protected:
  StepHandoverTest() { loop_.attach(world_); }

  test::ThreadWorld world_;
  StepHandover loop_;
};

TEST_F(StepHandoverTest, PassesEachStepOnceAndInOrder) {
  std::vector<std::uint32_t> seen;
  std::thread worker([&] {
    while (const auto step = loop_.next({})) {
      seen.push_back(step->samples);
    }
    loop_.end(nullptr);
  });
  loop_.begin();
  for (const std::uint32_t samples : {3U, 0U, 5U}) {
    loop_.step({.samples = samples});
    EXPECT_EQ(seen.back(), samples);  // the worker has taken it, and asks for the next one
  }
  loop_.leave();
  worker.join();
  EXPECT_THAT(seen, ElementsAre(3, 0, 5));
  EXPECT_TRUE(loop_.has_left());
}

TEST_F(StepHandoverTest, ThrowsTheErrorThatEndedTheWorker) {
  std::thread worker([&] {
    loop_.next({});
    loop_.end(std::make_exception_ptr(DataError("no room")));
  });
  loop_.begin();
  EXPECT_THROW(loop_.step({.samples = 1}), DataError);
  EXPECT_THROW(loop_.step({.samples = 1}), DataError);
  worker.join();
}

TEST_F(StepHandoverTest, RefusesStepsOfAJobThatHasEnded) {
  loop_.end(nullptr);
  EXPECT_THROW(loop_.begin(), Cancelled);
  EXPECT_THROW(loop_.step({.samples = 1}), Cancelled);
  EXPECT_TRUE(loop_.has_ended());
}

TEST_F(StepHandoverTest, EndsTheWorkerOfALoopThatIsAbandoned) {
  std::string reason;
  std::thread worker([&] {
    try {
      loop_.next({});
    } catch (const Error& error) {
      reason = error.what();
    }
  });
  loop_.begin();
  loop_.abandon("the program gave up");
  worker.join();
  EXPECT_EQ(reason, "the program gave up");
}

TEST_F(StepHandoverTest, ShowsProgressWhileTheProgramComputes) {
  int progressed = 0;
  std::thread worker([&] {
    loop_.next([&] { ++progressed; });
    loop_.end(nullptr);
  });
  loop_.begin();
  world_.await_blocked(1);
  loop_.leave();
  worker.join();
  EXPECT_EQ(progressed, 1);  // this world's waits have no deadline, so the end alone woke it
}

}  // namespace
}  // namespace syncopate
