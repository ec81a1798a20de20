// Goal:   a reported wait goes on while a worker computes in time, ends by the name of the worker that hangs or does
//         not come, and never by the name of one that waits itself.
// Method: heartbeats and reports with hand-made times; verdicts are compared with those worked out by hand.

#include "membership/wait_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint start{};
constexpr NodeId fast{1}, other{2}, slow{3};

wire::Heartbeat computing(double expected, std::uint64_t step = 0) {
  wire::Heartbeat heartbeat;
  heartbeat.set_computing(true);
  heartbeat.set_expected_seconds(expected);
  heartbeat.set_step(step);
  return heartbeat;
}

/// Three workers that joined at the start; the limit of a wait is a minute.
WaitJudge three_workers() {
  WaitJudge judge({.wait_limit = 60s});
  for (const NodeId node : {fast, other, slow}) {
    judge.joined(node, start);
  }
  return judge;
}

/// All three compute from the start; the slow one for 500 s, the two others for half a second.
WaitJudge three_unequal() {
  WaitJudge judge = three_workers();
  judge.heard(fast, computing(0.5), start);
  judge.heard(other, computing(0.5), start);
  judge.heard(slow, computing(500), start);
  judge.heard(fast, {}, start + 1s);
  judge.heard(other, {}, start + 1s);
  return judge;
}

WaitJudge::Report report(NodeId from, std::vector<NodeId> awaited, Duration waited) {
  return {.from = from, .awaited = std::move(awaited), .waited = waited, .limit = 60s};
}

TEST(WaitJudge, GoesOnWaitingForASlowWorkerThatComputes) {
  WaitJudge judge = three_unequal();
  for (Duration waited = 30s; waited < 9000s; waited += 30s) {
    const auto verdict = judge.judge(report(fast, {slow}, waited), start + 1s + waited);
    ASSERT_EQ(verdict.more, 30s) << to_seconds(waited);
  }
}

TEST(WaitJudge, NamesASlowWorkerThatHangs) {
  WaitJudge judge = three_unequal();
  EXPECT_TRUE(judge.judge(report(fast, {slow}, 9999s), start + 9999s).more);
  const auto verdict = judge.judge(report(fast, {slow}, 10000s), start + 10000s);
  EXPECT_FALSE(verdict.more);
  EXPECT_TRUE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(slow));
}

TEST(WaitJudge, NamesAFastWorkerThatHangsWhileASlowOneComputes) {
  WaitJudge judge = three_unequal();
  judge.heard(other, computing(0.5, 7), start + 20s);
  EXPECT_TRUE(judge.judge(report(fast, {slow, other}, 70s), start + 71s).more);
  const auto verdict = judge.judge(report(fast, {slow, other}, 80s), start + 81s);
  EXPECT_TRUE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(other));
}

TEST(WaitJudge, WaitsForAWorkerThroughOneThatWaitsForIt) {
  WaitJudge judge = three_unequal();
  EXPECT_TRUE(judge.judge(report(fast, {other}, 30s), start + 31s).more) << "as in a ring";
  EXPECT_TRUE(judge.judge(report(other, {slow}, 30s), start + 31s).more);
  EXPECT_TRUE(judge.judge(report(fast, {other}, 60s), start + 61s).more);
}

TEST(WaitJudge, NamesOneThatNeitherComputesNorWaitsThoughAnotherComputes) {
  WaitJudge judge = three_unequal();
  EXPECT_TRUE(judge.judge(report(fast, {other}, 59s), start + 60s).more);
  const auto verdict = judge.judge(report(fast, {other}, 60s), start + 61s);
  EXPECT_FALSE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(other));
}

TEST(WaitJudge, NamesTheOneForWhichAllOthersWait) {
  WaitJudge judge = three_workers();
  EXPECT_TRUE(judge.judge(report(fast, {other}, 30s), start + 30s).more);
  EXPECT_TRUE(judge.judge(report(other, {slow}, 30s), start + 30s).more);
  EXPECT_THAT(judge.judge(report(fast, {other}, 60s), start + 60s).missing, ElementsAre(slow));
  EXPECT_THAT(judge.judge(report(other, {slow}, 60s), start + 60s).missing, ElementsAre(slow));
}

TEST(WaitJudge, NamesThoseThatAreAwaitedWhereAllWait) {
  WaitJudge judge = three_workers();
  EXPECT_TRUE(judge.judge(report(fast, {other}, 30s), start + 30s).more);
  EXPECT_TRUE(judge.judge(report(other, {slow}, 30s), start + 30s).more);
  EXPECT_TRUE(judge.judge(report(slow, {fast}, 30s), start + 30s).more);
  EXPECT_THAT(judge.judge(report(fast, {other}, 60s), start + 60s).missing, ElementsAre(other));
}

TEST(WaitJudge, GivesOneThatHasJustStoppedComputingTheLimitOfAWait) {
  WaitJudge judge = three_unequal();
  judge.heard(slow, {}, start + 500s);
  EXPECT_EQ(judge.judge(report(fast, {slow}, 545s), start + 545s).more, 15s);
  EXPECT_THAT(judge.judge(report(fast, {slow}, 560s), start + 560s).missing, ElementsAre(slow));
}

TEST(WaitJudge, KeepsToTheLimitOfAWaitThatUsuallyTakesLong) {
  WaitJudge judge = three_workers();
  WaitJudge::Report longer = report(fast, {other}, 60s);
  longer.limit = 100s;
  EXPECT_EQ(judge.judge(longer, start + 61s).more, 30s);
  longer.waited = 90s;
  EXPECT_EQ(judge.judge(longer, start + 91s).more, 10s);
  longer.waited = 100s;
  EXPECT_THAT(judge.judge(longer, start + 101s).missing, ElementsAre(other));
}

TEST(WaitJudge, DoesNotExcuseAServerByWorkersThatCompute) {
  WaitJudge judge = three_unequal();
  EXPECT_EQ(judge.judge(report(fast, {}, 30s), start + 31s).more, 30s);
  const auto verdict = judge.judge(report(fast, {}, 60s), start + 61s);
  EXPECT_FALSE(verdict.more);
  EXPECT_THAT(verdict.missing, IsEmpty());
}

TEST(WaitJudge, ForgetsThoseThatAreGone) {
  WaitJudge judge = three_unequal();
  judge.gone(slow);
  EXPECT_TRUE(judge.judge(report(fast, {slow}, 60s), start + 61s).more) << "the group will change";
  EXPECT_THAT(judge.judge(report(fast, {slow, other}, 60s), start + 10061s).missing,
              ElementsAre(other));
  EXPECT_EQ(judge.watch(slow), nullptr);
}

}  // namespace
}  // namespace syncopate
