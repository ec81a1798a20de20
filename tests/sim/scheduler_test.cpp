// Goal:   strands and events run in the promised order, a deadline ends a wait, and the scheduler
//         detects a loop in which the clock never advances.
// Method: strands and events record their names with the virtual time; the test compares the
//         records.

#include "sim/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

using std::chrono::nanoseconds;

TimePoint ns(std::int64_t count) {
  return TimePoint(nanoseconds(count));
}

class Something final : public Waiting {
 public:
  std::string describe() const override { return "something"; }
};

class Notes final : public EventTarget {
 public:
  explicit Notes(const Scheduler& scheduler) : scheduler_(scheduler) {}

  void fire(std::uint64_t argument) override { add("event " + std::to_string(argument)); }
  void add(const std::string& text) {
    lines.push_back(std::to_string(scheduler_.now().time_since_epoch().count()) + " " + text);
  }

  std::vector<std::string> lines;

 private:
  const Scheduler& scheduler_;
};

void run(Scheduler& scheduler) {
  while (scheduler.step()) {
  }
}

TEST(Scheduler, EventsFireByTimeThenInTheOrderOfScheduling) {
  Scheduler scheduler({});
  Notes notes(scheduler);
  scheduler.schedule(ns(20), notes, 1);
  scheduler.schedule(ns(10), notes, 2);
  scheduler.schedule(ns(20), notes, 3);
  scheduler.schedule(ns(-5), notes, 4);
  run(scheduler);
  EXPECT_THAT(notes.lines,
              testing::ElementsAre("0 event 4", "10 event 2", "20 event 1", "20 event 3"));
}

TEST(Scheduler, ReadyStrandsRunBeforeEventsAndInTurn) {
  Scheduler scheduler({});
  Notes notes(scheduler);
  scheduler.schedule(ns(0), notes, 1);
  for (const std::string name : {"a", "b"}) {
    scheduler.start(name, [&, name] {
      notes.add(name);
      EXPECT_FALSE(scheduler.block(Something{}, ns(7)));
      notes.add(name);
    });
  }
  run(scheduler);
  EXPECT_THAT(notes.lines, testing::ElementsAre("0 a", "0 b", "0 event 1", "7 a", "7 b"));
}

TEST(Scheduler, AWokenStrandForgetsItsDeadline) {
  Scheduler scheduler({});
  Notes notes(scheduler);
  Strand& sleeper = scheduler.start("sleeper", [&] {
    EXPECT_TRUE(scheduler.block(Something{}, ns(100)));
    notes.add("woken");
    EXPECT_FALSE(scheduler.block(Something{}, ns(150)));
    notes.add("late");
    EXPECT_FALSE(scheduler.block(Something{}, ns(20)));
    notes.add("at once");
  });
  scheduler.start("waker", [&] {
    EXPECT_FALSE(scheduler.block(Something{}, ns(30)));
    scheduler.wake(sleeper);
    scheduler.wake(sleeper);
  });
  run(scheduler);
  EXPECT_THAT(notes.lines, testing::ElementsAre("30 woken", "150 late", "150 at once"));
}

TEST(Scheduler, AnEarlierDeadlineOvertakesALaterOneOfTheSameStrand) {
  Scheduler scheduler({});
  Notes notes(scheduler);
  Strand& sleeper = scheduler.start("sleeper", [&] {
    EXPECT_TRUE(scheduler.block(Something{}, ns(1000)));
    EXPECT_FALSE(scheduler.block(Something{}, ns(50)));
    notes.add("early");
    EXPECT_FALSE(scheduler.block(Something{}, ns(2000)));
    notes.add("late");
  });
  scheduler.start("waker", [&] { scheduler.wake(sleeper); });
  run(scheduler);
  EXPECT_THAT(notes.lines, testing::ElementsAre("50 early", "2000 late"));
}

TEST(Scheduler, TellsWhoIsBlockedOnWhat) {
  Scheduler scheduler({});
  Strand& strand = scheduler.start("the reader", [&] {
    EXPECT_FALSE(scheduler.block(Something{}, ns(1500)));
    EXPECT_TRUE(scheduler.block(Something{}, no_deadline));
  });
  run(scheduler);
  EXPECT_EQ(scheduler.blocked(), "\n  the reader waits for something since 0.000001500 s");
  scheduler.wake(strand);
  run(scheduler);
  EXPECT_EQ(scheduler.blocked(), "");
}

TEST(Scheduler, RefusesToBlockOutsideAStrand) {
  Scheduler scheduler({});
  EXPECT_THROW(scheduler.block(Something{}, ns(10)), InternalError);
}

TEST(Scheduler, ALoopThatNeverLetsTimePassIsAnError) {
  Scheduler scheduler({.switches_per_instant = 1000});
  bool stop = false;
  bool ended = false;
  scheduler.start("the impatient", [&] {
    while (!stop) {
      EXPECT_FALSE(scheduler.block(Something{}, scheduler.now()));
    }
    ended = true;
  });
  try {
    run(scheduler);
    ADD_FAILURE() << "the loop ended";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the impatient runs without end"));
  }
  stop = true;
  scheduler.run_ready();
  EXPECT_TRUE(ended) << "its stack is unwound before what it refers to is gone";
}

}  // namespace
}  // namespace syncopate::sim
