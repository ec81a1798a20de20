// Goal:   a job ends if the collective of one program and the step of another wait for each other,
//         and goes on as long as one of the two may still arrive.
// Method: a MutualWait, and a Membership whose decisions are compared, get heartbeats with
//         hand-made times.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "membership/program_watch.hpp"
#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using testing::IsEmpty;

constexpr Duration patience = std::chrono::seconds(5);
const NodeId first{1};
const NodeId second{2};

/// Returns the heartbeat of a program that computes.
wire::Heartbeat computing(std::uint64_t step) {
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_computing(true);
  heartbeat.set_step(step);
  return heartbeat;
}

wire::Heartbeat in_collective(std::uint64_t step, const std::string& collective = "barrier") {
  wire::Heartbeat heartbeat = computing(step);
  heartbeat.set_program_waits(true);
  heartbeat.set_program_operation(collective);
  return heartbeat;
}

/// Returns the heartbeat of a program that waits for others in its step.
wire::Heartbeat in_step(std::uint64_t step) {
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("synchronization");
  heartbeat.set_waiting(true);
  heartbeat.set_step(step);
  return heartbeat;
}

/// Returns the heartbeat of a program whose loop has ended after `step` steps.
wire::Heartbeat at_end(std::uint64_t step) {
  wire::Heartbeat heartbeat = in_step(step);
  heartbeat.set_program_ended(true);
  return heartbeat;
}

/// Returns the heartbeat of a program that waits for all others in an align, while another thread
/// takes steps.
wire::Heartbeat in_align(std::uint64_t step) {
  wire::Heartbeat heartbeat = step % 2 == 0 ? in_step(step) : computing(step);
  heartbeat.set_program_waits(true);
  heartbeat.set_program_operation("allgather of 8 bytes");
  return heartbeat;
}

/// Returns the state after `first` and `second` have sent these heartbeats for `seconds`.
MutualWait after(double seconds, const wire::Heartbeat& of_first,
                 const wire::Heartbeat& of_second) {
  MutualWait wait;
  wait.joined(first, start);
  wait.joined(second, start);
  for (int tenth = 1; tenth <= static_cast<int>(10 * seconds); ++tenth) {
    wait.on_heartbeat(first, of_first, at(tenth / 10.0));
    wait.on_heartbeat(second, of_second, at(tenth / 10.0));
  }
  return wait;
}

TEST(MutualWait, FindsACollectiveAndAStepThatWaitForEachOther) {
  const auto found = after(6, in_step(9), in_collective(7)).found(patience, at(6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_collective, second);
  EXPECT_EQ(found->operation, "barrier");
  EXPECT_EQ(found->elsewhere, first);
  EXPECT_FALSE(found->at_end);
  EXPECT_EQ(found->step, 9U);
  EXPECT_NEAR(to_seconds(found->waited), 5.9, 1e-6);
}

TEST(MutualWait, HasPatience) {
  EXPECT_FALSE(after(4.5, in_step(9), in_collective(7)).found(patience, at(4.5)));
}

TEST(MutualWait, FindsNothingWhileAProgramComputes) {
  EXPECT_FALSE(after(60, in_step(9), computing(7)).found(patience, at(60)));
  EXPECT_FALSE(after(60, in_collective(9), computing(7)).found(patience, at(60)));
}

TEST(MutualWait, FindsNothingWhereAllAreInTheSame) {
  EXPECT_FALSE(after(60, in_step(9), in_step(9)).found(patience, at(60)));
  EXPECT_FALSE(after(60, in_collective(9), in_collective(9)).found(patience, at(60)));
}

TEST(MutualWait, FindsNothingWhereTheOtherProgramTakesPartBesideItsStep) {
  wire::Heartbeat beside = in_step(9);
  beside.set_program_operation("barrier");
  EXPECT_FALSE(after(60, beside, in_collective(7)).found(patience, at(60)));
  beside.set_program_operation("allreduce of 3 float32 (sum)");  // another collective
  EXPECT_TRUE(after(60, beside, in_collective(7)).found(patience, at(60)));
}

/// Returns the state after `seconds` in which `first` takes ten steps per second, and `second`
/// always sends the same heartbeat.
MutualWait after_steps(double seconds, wire::Heartbeat (*of_first)(std::uint64_t),
                       const wire::Heartbeat& of_second) {
  MutualWait wait;
  wait.joined(first, start);
  wait.joined(second, start);
  for (int tenth = 1; tenth <= static_cast<int>(10 * seconds); ++tenth) {
    wait.on_heartbeat(first, of_first(tenth), at(tenth / 10.0));
    wait.on_heartbeat(second, of_second, at(tenth / 10.0));
  }
  return wait;
}

TEST(MutualWait, FindsACollectiveThatAnEndedLoopDoesNotComeTo) {
  const MutualWait wait = after_steps(6, at_end, in_collective(7));
  EXPECT_FALSE(wait.found(std::chrono::seconds(6), at(6)));
  const auto found = wait.found(patience, at(6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_collective, second);
  EXPECT_EQ(found->elsewhere, first);
  EXPECT_TRUE(found->at_end);
  EXPECT_EQ(found->step, 60U);
  EXPECT_NEAR(to_seconds(found->waited), 5.9, 1e-6);
}

TEST(MutualWait, FindsAnAlignThatAnEndedLoopDoesNotComeTo) {
  const auto found = after_steps(6, in_align, at_end(7)).found(patience, at(6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_collective, first);
  EXPECT_EQ(found->operation, "allgather of 8 bytes");
  EXPECT_EQ(found->elsewhere, second);
}

TEST(MutualWait, FindsNothingWhereTheStepsOfAnAlignLetAnotherGoOn) {
  EXPECT_FALSE(after_steps(60, in_align, in_step(7)).found(patience, at(60)));
  EXPECT_FALSE(after_steps(60, in_align, computing(7)).found(patience, at(60)));
}

TEST(MutualWait, FindsNothingWhereAllLoopsHaveEnded) {
  EXPECT_FALSE(after(60, at_end(9), at_end(9)).found(patience, at(60)));
}

TEST(MutualWait, FindsNothingWhereACollectiveOfAnEndedLoopGoesOn) {
  wire::Heartbeat beside = at_end(9);
  beside.set_program_operation("barrier");
  EXPECT_FALSE(after(60, beside, in_collective(7)).found(patience, at(60)));
}

TEST(MutualWait, ALoopThatGlancesWaits) {
  wire::Heartbeat glances = in_collective(7);
  glances.set_program_waits(false);
  MutualWait wait = after(6, in_step(9), in_collective(7));
  wait.on_heartbeat(second, glances, at(6));
  EXPECT_TRUE(wait.found(patience, at(6)));
  wait.on_heartbeat(second, glances, at(6.1));
  EXPECT_FALSE(wait.found(patience, at(6.1))) << "it computes while the collective goes on";
}

TEST(MutualWait, FindsNothingWhereAStepIsDoneMeanwhile) {
  MutualWait wait = after(6, in_step(9), in_collective(7));
  wait.on_heartbeat(second, in_collective(8), at(6));  // another of its threads took a step
  EXPECT_FALSE(wait.found(patience, at(6)));
}

TEST(MutualWait, FindsNothingWhereOneIsNotHeard) {
  MutualWait wait = after(6, in_step(9), in_collective(7));
  wait.on_heartbeat(first, in_step(9), at(9));
  EXPECT_FALSE(wait.found(patience, at(9)));
  wait.on_heartbeat(second, in_collective(7), at(9.1));
  EXPECT_TRUE(wait.found(patience, at(9.1)));
}

TEST(MutualWait, FindsNothingWhereOneThatComputesIsLeft) {
  MutualWait wait;
  const NodeId third{3};
  for (const NodeId node : {first, second, third}) {
    wait.joined(node, start);
  }
  for (int second_passed = 1; second_passed <= 10; ++second_passed) {
    wait.on_heartbeat(first, in_step(9), at(second_passed));
    wait.on_heartbeat(second, in_collective(7), at(second_passed));
    wait.on_heartbeat(third, computing(8), at(second_passed));
  }
  EXPECT_FALSE(wait.found(patience, at(10)));
  wait.gone(third);
  EXPECT_TRUE(wait.found(patience, at(10)));
}

TEST(MutualWait, DoesNotCountTheAbsenceOfTheListener) {
  MutualWait wait = after(4, in_step(9), in_collective(7));
  wait.forgive(std::chrono::seconds(30), at(34));
  wait.on_heartbeat(first, in_step(9), at(34));
  wait.on_heartbeat(second, in_collective(7), at(34));
  EXPECT_FALSE(wait.found(patience, at(34)));
}

/// Returns a membership of two workers, nodes 1 and 2. From second 1 on node 1 waits in a
/// collective and node 2 in a step.
Membership waiting_for_each_other(std::uint32_t servers, double seconds) {
  Membership membership({.workers = 2, .servers = servers, .evaluators = 0}, start);
  membership.joined(first, worker(0), start);
  membership.joined(second, worker(1), start);
  if (servers > 0) {
    wire::Join server = worker(0);
    server.set_role(wire::ROLE_SERVER);
    membership.joined(NodeId{3}, server, start);
  }
  for (int passed = 1; passed <= static_cast<int>(seconds); ++passed) {
    membership.on_heartbeat(first, in_collective(7, "allreduce of 3 float32 (sum)"), at(passed));
    membership.on_heartbeat(second, in_step(9), at(passed));
  }
  return membership;
}

TEST(MutualWait, EndsTheJobWithTheWholeStory) {
  EXPECT_THAT(waiting_for_each_other(0, 20).time_passed(at(20)), IsEmpty());
  Membership membership = waiting_for_each_other(0, 22);
  EXPECT_EQ(
      reason_of(membership.time_passed(at(22))),
      "worker 0 (pid 100 on host) waits in allreduce of 3 float32 (sum) of its program, and worker "
      "1 (pid 101 on host) waits for it in the step after step 9, both for 21.0 s; every worker "
      "calls the same collectives between the same steps, and after an align where workers take "
      "different numbers of steps");
}

TEST(MutualWait, SaysThatTheOtherHasEnded) {
  Membership membership = waiting_for_each_other(0, 1);
  for (int passed = 2; passed <= 23; ++passed) {
    membership.on_heartbeat(first, in_collective(7), at(passed));
    membership.on_heartbeat(second, at_end(9), at(passed));
  }
  EXPECT_THAT(reason_of(membership.time_passed(at(23))),
              testing::StartsWith("worker 0 (pid 100 on host) waits in barrier of its program, and "
                                  "worker 1 (pid 101 on host) waits for it at the end of its loop, "
                                  "after step 9, both for 21.0 s; "));
}

TEST(MutualWait, HasLessPatienceOnceTheUserHasRequestedTheEnd) {
  Membership membership = waiting_for_each_other(0, 4);
  EXPECT_THAT(membership.end_requested(at(4)), IsEmpty());
  EXPECT_THAT(reason_of(membership.time_passed(at(4))),
              testing::StartsWith("worker 0 (pid 100 on host) waits in allreduce"));
}

TEST(MutualWait, WaitsForAServerThatIsBehind) {
  Membership membership = waiting_for_each_other(1, 30);
  wire::Heartbeat busy;
  busy.set_computing(true);
  membership.on_heartbeat(NodeId{3}, busy, at(30));
  EXPECT_THAT(membership.time_passed(at(30)), IsEmpty());
  wire::Heartbeat idle;
  idle.set_standing_by(true);
  membership.on_heartbeat(NodeId{3}, idle, at(30));
  EXPECT_THAT(reason_of(membership.time_passed(at(30))),
              testing::StartsWith("worker 0 (pid 100 on host) waits in allreduce"));
}

TEST(MutualWait, IsNamedAfterTheRequestToEndWhereTheOtherStepsOnAlone) {
  WaitPolicy policy({.wait_limit = std::chrono::minutes(1)});
  policy.joined(first, start);
  policy.joined(second, start);
  const auto beats = [&](std::uint64_t step, double from, double until) {
    for (double when = from; when <= until; when += 0.1) {
      for (const NodeId node : {first, second}) {
        wire::Heartbeat heartbeat = node == first ? in_collective(7) : computing(step);
        heartbeat.set_progress(static_cast<std::uint64_t>(100 * when));
        policy.on_heartbeat(node, heartbeat, at(when));
      }
    }
  };
  beats(7, 0.1, 2);
  policy.end_expected();
  beats(8, 2, 60);
  EXPECT_THAT(policy.preventing_end(std::chrono::seconds(2), at(60)), IsEmpty())
      << "it may come after its step";
  beats(9, 60, 61);
  EXPECT_THAT(policy.preventing_end(std::chrono::seconds(2), at(61)), testing::ElementsAre(first));
}

}  // namespace
}  // namespace syncopate
