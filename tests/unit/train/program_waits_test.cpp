// Goal:   a program's waits are known to other threads while they last: those of the thread whose
//         loop trains, and the collective that has begun first.
// Method: operations and waits that begin and end on several threads.

#include "train/program_waits.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

namespace syncopate {
namespace {

TEST(ProgramWaits, AWaitOfTheLoopsThreadCounts) {
  ProgramWaits waits;
  waits.loop_is_here();
  EXPECT_FALSE(waits.loop_waits());
  {
    const ProgramWaits::Wait wait(&waits);
    const ProgramWaits::Wait inner(&waits);
    const ProgramWaits::Wait none(nullptr);
    EXPECT_TRUE(waits.loop_waits());
  }
  EXPECT_FALSE(waits.loop_waits());
}

TEST(ProgramWaits, AWaitOfAnotherThreadDoesNot) {
  ProgramWaits waits;
  std::thread([&] { waits.loop_is_here(); }).join();
  const ProgramWaits::Wait wait(&waits);
  EXPECT_FALSE(waits.loop_waits());
}

TEST(ProgramWaits, AWaitThatBeganBeforeTheLoopEndsAlone) {
  ProgramWaits waits;
  {
    const ProgramWaits::Wait wait(&waits);
    waits.loop_is_here();
  }
  const ProgramWaits::Wait wait(&waits);
  EXPECT_TRUE(waits.loop_waits());
}

TEST(ProgramWaits, ALoopEndsForGood) {
  ProgramWaits waits;
  waits.loop_is_here();
  EXPECT_FALSE(waits.loop_has_ended());
  waits.loop_ends();
  EXPECT_TRUE(waits.loop_has_ended());
}

TEST(ProgramWaits, TheCollectiveThatBeganFirstIsNamed) {
  ProgramWaits waits;
  EXPECT_EQ(waits.operation(), std::nullopt);
  std::optional<ProgramWaits::Operation> first;
  first.emplace(waits, [] { return std::string("barrier"); });
  const ProgramWaits::Operation second(waits, [] { return std::string("allreduce"); });
  EXPECT_EQ(waits.operation(), "barrier");
  first.reset();
  EXPECT_EQ(waits.operation(), "allreduce");
}

}  // namespace
}  // namespace syncopate
