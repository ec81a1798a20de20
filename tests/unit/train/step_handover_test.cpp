// Goal:   a program's loop and its worker take turns: the worker gets each step once, and before it
//         what is ready of the gradient; the loop goes on when the worker asks again, and the end
//         of one reaches the other; so does an interruption of the loop.
// Method: the loop on this thread, the worker on another; each waits for the other alone.
#include "train/step_handover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "tests/unit/train/thread_world.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// Keeps what it gets.
class Kept final : public GradientSink {
 public:
  void ready(std::size_t begin, std::size_t end) override { intervals.emplace_back(begin, end); }
  std::vector<std::pair<std::size_t, std::size_t>> intervals;
};

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

TEST_F(StepHandoverTest, PassesOnWhatIsReadyBetweenTheBeginOfAPassAndItsStep) {
  Kept sink;
  std::optional<std::uint32_t> begun;
  std::thread worker([&] {
    begun = loop_.samples_of_pass({});
    loop_.next({}, &sink);
    loop_.next({});
    loop_.end(nullptr);
  });
  loop_.begin();
  loop_.begin_pass(4);
  EXPECT_EQ(begun, 4U);
  loop_.ready(6, 9);
  loop_.ready(0, 6);
  EXPECT_THAT(sink.intervals, ElementsAre(Pair(6, 9), Pair(0, 6)));
  loop_.step({.samples = 4});
  loop_.ready(0, 1);  // the sink may be gone
  EXPECT_THAT(sink.intervals, testing::SizeIs(2));
  loop_.leave();
  worker.join();
}

TEST_F(StepHandoverTest, KnowsTheSamplesOfAStepWithoutAPass) {
  Kept sink;
  std::vector<std::optional<std::uint32_t>> seen;
  std::thread worker([&] {
    seen.push_back(loop_.samples_of_pass({}));
    loop_.next({}, &sink);
    seen.push_back(loop_.samples_of_pass({}));
    loop_.end(nullptr);
  });
  loop_.begin();
  loop_.step({.samples = 7});
  loop_.leave();
  worker.join();
  EXPECT_THAT(seen, ElementsAre(std::optional(7U), std::nullopt));
  EXPECT_THAT(sink.intervals, IsEmpty());
}

TEST_F(StepHandoverTest, HasTheWorkerTakeAReplicaThatIsSetBetweenTwoSteps) {
  Kept sink;
  int taken = 0;
  std::vector<std::optional<std::uint32_t>> seen;
  loop_.on_replica_set([&] { ++taken; });
  std::thread worker([&] {
    seen.push_back(loop_.samples_of_pass({}));
    seen.push_back(loop_.next({}, &sink)->samples);
    loop_.next({});
    loop_.end(nullptr);
  });
  loop_.begin();
  loop_.take_replica();
  EXPECT_EQ(taken, 1);
  EXPECT_THAT(seen, IsEmpty());  // it is no step
  loop_.step({.samples = 2});
  loop_.take_replica();
  EXPECT_EQ(taken, 2);
  loop_.leave();
  worker.join();
  EXPECT_THAT(seen, ElementsAre(2, 2));
}

TEST_F(StepHandoverTest, ThrowsTheErrorOfAWorkerThatCannotTakeTheReplica) {
  loop_.on_replica_set([] { throw DataError("no room"); });
  std::thread worker([&] {
    try {
      loop_.next({});
    } catch (const DataError&) {
      loop_.end(std::current_exception());
    }
  });
  loop_.begin();
  EXPECT_THROW(loop_.take_replica(), DataError);
  EXPECT_THROW(loop_.take_replica(), DataError);
  worker.join();
}

TEST_F(StepHandoverTest, BeginsNoPassOfAJobThatHasEnded) {
  std::thread worker([&] {
    loop_.samples_of_pass({});
    loop_.end(std::make_exception_ptr(DataError("no room")));
  });
  loop_.begin();
  EXPECT_THROW(loop_.begin_pass(1), DataError);
  worker.join();
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

/// A worker takes one step, and waits for others in it until its world is cancelled.
class InterruptedLoopTest : public StepHandoverTest {
 protected:
  InterruptedLoopTest() {
    interruption::ask([this] { return interrupts_; });
  }
  ~InterruptedLoopTest() override { interruption::ask({}); }

  void work() {
    std::exception_ptr failure;
    try {
      loop_.next({});
      world_.make_event()->wait(no_deadline);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    loop_.detach();
    loop_.end(failure);
  }

  /// A job that ends as its coordinator would end it.
  void attach_to_job() {
    loop_.attach(world_, [this](const std::string& reason) {
      reasons_.push_back(reason);
      world_.cancel(std::make_exception_ptr(DataError("worker 0: interrupted")));
    });
  }

  bool interrupts_ = true;
  std::vector<std::string> reasons_;  ///< for which the job was ended
};

TEST_F(InterruptedLoopTest, EndsTheJobAndThenItsStep) {
  attach_to_job();
  std::thread worker([this] { work(); });
  loop_.begin();
  EXPECT_THROW(loop_.step({.samples = 1}), Cancelled);
  EXPECT_TRUE(loop_.has_ended());
  EXPECT_THROW(loop_.step({.samples = 1}), DataError);  // by which the job has ended
  loop_.abandon("the script has ended");                // reports it to nobody again
  EXPECT_THAT(reasons_, ElementsAre(interruption::reason));
  worker.join();
}

TEST_F(InterruptedLoopTest, EndsItsWorkerWhereNobodyEndsTheJob) {
  std::thread worker([this] { work(); });
  loop_.begin();
  EXPECT_THROW(loop_.step({.samples = 1}), Cancelled);
  EXPECT_TRUE(loop_.has_ended());
  worker.join();
}

TEST_F(InterruptedLoopTest, EndsTheJobAndThenItsWaitForTheEnd) {
  attach_to_job();
  std::thread worker([this] { work(); });
  loop_.begin();
  loop_.leave();
  EXPECT_THROW(loop_.await_end(), Cancelled);
  EXPECT_THAT(reasons_, ElementsAre(interruption::reason));
  worker.join();
}

TEST_F(InterruptedLoopTest, IsNotInterruptedByAnotherThread) {
  std::thread worker([this] {
    loop_.next({});
    loop_.next({});
    loop_.end(nullptr);
  });
  std::thread loop([this] {
    EXPECT_FALSE(interruption::is_requested());
    loop_.begin();
    loop_.step({.samples = 1});
    loop_.leave();
    loop_.await_end();
  });
  loop.join();
  worker.join();
}

}  // namespace
}  // namespace syncopate
