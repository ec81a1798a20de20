// Goal:   others wait for a worker as long as its step may take, given its expected duration and
//         its progress, and at least for the wait limit. A reported wait goes on while a worker
//         computes within its time. It ends with the name of the worker that hangs or does not
//         arrive, and never with the name of a worker that waits itself.
// Method: heartbeats and reports with hand-made times; the times and decisions are compared with
//         those worked out by hand.

#include "membership/wait_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint start{};
constexpr StepWatch::Options minute{.wait_limit = 60s};

struct Beat {
  bool computing = true;
  std::uint64_t step = 0;
  double expected = 0;
  std::uint64_t progress = 0;
};

wire::Heartbeat heartbeat(const Beat& beat) {
  wire::Heartbeat heartbeat;
  heartbeat.set_computing(beat.computing);
  heartbeat.set_step(beat.step);
  heartbeat.set_expected_seconds(beat.expected);
  heartbeat.set_progress(beat.progress);
  return heartbeat;
}

TEST(StepWatch, WaitsForAStepAsLongAsIsLikely) {
  struct Case {
    double expected;
    Duration limit;
  };
  for (const Case& each : {Case{0.5, 60s}, Case{3, 60s}, Case{3.5, 70s}, Case{500, 10000s}}) {
    SCOPED_TRACE(each.expected);
    StepWatch watch(minute, start);
    for (int second = 5; second < 100; ++second) {
      watch.on_heartbeat(heartbeat({.expected = each.expected}), start + second * 1s);
    }
    EXPECT_EQ(watch.begun(), start + 5s);
    EXPECT_EQ(watch.due(), start + 5s + each.limit);
    EXPECT_TRUE(watch.waited_for(watch.due() - 1ns));
    EXPECT_FALSE(watch.hangs(watch.due() - 1ns));
    EXPECT_TRUE(watch.hangs(watch.due()));
  }
}

TEST(StepWatch, BeginsAgainWithEachStep) {
  StepWatch watch(minute, start);
  watch.on_heartbeat(heartbeat({.step = 7, .expected = 10}), start + 10s);
  watch.on_heartbeat(heartbeat({.step = 8, .expected = 10}), start + 20s);
  EXPECT_EQ(watch.due(), start + 220s);
}

TEST(StepWatch, ExtendsAStepThatMakesProgress) {
  StepWatch watch(minute, start);
  watch.on_heartbeat(heartbeat({.expected = 1}), start);
  watch.on_heartbeat(heartbeat({.expected = 1, .progress = 12}), start + 50s);
  watch.on_heartbeat(heartbeat({.expected = 1, .progress = 12}), start + 55s);
  EXPECT_EQ(watch.due(), start + 110s) << "a device may have become slower";
  watch.on_heartbeat(heartbeat({.expected = 100, .progress = 13}), start + 60s);
  EXPECT_EQ(watch.due(), start + 2000s);
}

TEST(StepWatch, GivesAFirstStepTenMinutesWithoutProgress) {
  StepWatch watch(minute, start);
  watch.on_heartbeat(heartbeat({}), start);
  EXPECT_EQ(watch.due(), start + 10min);
  watch.on_heartbeat(heartbeat({.progress = 1}), start + 9min);
  watch.on_heartbeat(heartbeat({.progress = 2}), start + 18min);
  EXPECT_EQ(watch.due(), start + 28min);
  EXPECT_FALSE(watch.hangs(start + 28min - 1ns));
  EXPECT_TRUE(watch.hangs(start + 28min));
  StepWatch patient({.wait_limit = 1h}, start);
  patient.on_heartbeat(heartbeat({}), start);
  EXPECT_EQ(patient.due(), start + 1h);
}

TEST(StepWatch, WaitsForOneThatDoesNotComputeUntilTheLimitOfAWait) {
  StepWatch watch(minute, start + 3s);
  EXPECT_EQ(watch.due(), start + 63s) << "it starts up";
  watch.on_heartbeat(heartbeat({.expected = 500}), start + 10s);
  watch.on_heartbeat(heartbeat({.computing = false, .step = 1, .expected = 500}), start + 510s);
  watch.on_heartbeat(heartbeat({.computing = false, .step = 1, .expected = 500}), start + 520s);
  EXPECT_EQ(watch.due(), start + 570s);
  EXPECT_FALSE(watch.waited_for(start + 570s));
  EXPECT_FALSE(watch.hangs(start + 570s)) << "it may wait itself";
  watch.on_heartbeat(heartbeat({.step = 1, .expected = 500}), start + 600s);
  EXPECT_EQ(watch.due(), start + 10600s);
}

TEST(StepWatch, HasNoLimitBelowTheTimeThatHeartbeatsTake) {
  StepWatch watch({.wait_limit = 10ms}, start);
  watch.on_heartbeat(heartbeat({.expected = 1e-4}), start);
  EXPECT_EQ(watch.due(), start + 1s);
}

TEST(StepWatch, TakesNoNonsenseForATime) {
  for (const double seconds :
       {-5.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    StepWatch watch(minute, start);
    watch.on_heartbeat(heartbeat({.expected = seconds}), start);
    EXPECT_EQ(watch.due(), start + 10min);
  }
  StepWatch watch(minute, start);
  watch.on_heartbeat(heartbeat({.expected = 1e300}), start);
  EXPECT_GT(watch.due(), start + 10000h);
}

constexpr NodeId fast{1}, other{2}, slow{3};

wire::Heartbeat computing(double expected, std::uint64_t step = 0) {
  wire::Heartbeat heartbeat;
  heartbeat.set_computing(true);
  heartbeat.set_expected_seconds(expected);
  heartbeat.set_step(step);
  return heartbeat;
}

/// Returns the policy of three workers that joined at the start, with a wait limit of a minute.
WaitPolicy three_workers() {
  WaitPolicy policy({.wait_limit = 60s});
  for (const NodeId node : {fast, other, slow}) {
    policy.joined(node, start);
  }
  return policy;
}

/// All three workers compute from the start: the slow one for 500 s, the others for half a second.
WaitPolicy three_unequal() {
  WaitPolicy policy = three_workers();
  policy.on_heartbeat(fast, computing(0.5), start);
  policy.on_heartbeat(other, computing(0.5), start);
  policy.on_heartbeat(slow, computing(500), start);
  policy.on_heartbeat(fast, {}, start + 1s);
  policy.on_heartbeat(other, {}, start + 1s);
  return policy;
}

WaitPolicy::Report report(NodeId from, std::vector<NodeId> awaited, Duration waited) {
  return {.from = from, .awaited = std::move(awaited), .waited = waited, .limit = 60s};
}

TEST(WaitPolicy, GoesOnWaitingForASlowWorkerThatComputes) {
  WaitPolicy policy = three_unequal();
  for (Duration waited = 30s; waited < 9000s; waited += 30s) {
    const auto verdict = policy.decide(report(fast, {slow}, waited), start + 1s + waited);
    ASSERT_EQ(verdict.more, 30s) << to_seconds(waited);
  }
}

TEST(WaitPolicy, NamesASlowWorkerThatHangs) {
  WaitPolicy policy = three_unequal();
  EXPECT_TRUE(policy.decide(report(fast, {slow}, 9999s), start + 9999s).more);
  const auto verdict = policy.decide(report(fast, {slow}, 10000s), start + 10000s);
  EXPECT_FALSE(verdict.more);
  EXPECT_TRUE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(slow));
}

TEST(WaitPolicy, NamesAFastWorkerThatHangsWhileASlowOneComputes) {
  WaitPolicy policy = three_unequal();
  policy.on_heartbeat(other, computing(0.5, 7), start + 20s);
  EXPECT_TRUE(policy.decide(report(fast, {slow, other}, 70s), start + 71s).more);
  const auto verdict = policy.decide(report(fast, {slow, other}, 80s), start + 81s);
  EXPECT_TRUE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(other));
}

TEST(WaitPolicy, WaitsForAWorkerThroughOneThatWaitsForIt) {
  WaitPolicy policy = three_unequal();
  EXPECT_TRUE(policy.decide(report(fast, {other}, 30s), start + 31s).more) << "as in a ring";
  EXPECT_TRUE(policy.decide(report(other, {slow}, 30s), start + 31s).more);
  EXPECT_TRUE(policy.decide(report(fast, {other}, 60s), start + 61s).more);
}

TEST(WaitPolicy, NamesOneThatNeitherComputesNorWaitsThoughAnotherComputes) {
  WaitPolicy policy = three_unequal();
  EXPECT_TRUE(policy.decide(report(fast, {other}, 59s), start + 60s).more);
  const auto verdict = policy.decide(report(fast, {other}, 60s), start + 61s);
  EXPECT_FALSE(verdict.hang);
  EXPECT_THAT(verdict.missing, ElementsAre(other));
}

TEST(WaitPolicy, NamesTheOneForWhichAllOthersWait) {
  WaitPolicy policy = three_workers();
  EXPECT_TRUE(policy.decide(report(fast, {other}, 30s), start + 30s).more);
  EXPECT_TRUE(policy.decide(report(other, {slow}, 30s), start + 30s).more);
  EXPECT_THAT(policy.decide(report(fast, {other}, 60s), start + 60s).missing, ElementsAre(slow));
  EXPECT_THAT(policy.decide(report(other, {slow}, 60s), start + 60s).missing, ElementsAre(slow));
}

TEST(WaitPolicy, NamesThoseThatAreAwaitedWhereAllWait) {
  WaitPolicy policy = three_workers();
  EXPECT_TRUE(policy.decide(report(fast, {other}, 30s), start + 30s).more);
  EXPECT_TRUE(policy.decide(report(other, {slow}, 30s), start + 30s).more);
  EXPECT_TRUE(policy.decide(report(slow, {fast}, 30s), start + 30s).more);
  EXPECT_THAT(policy.decide(report(fast, {other}, 60s), start + 60s).missing, ElementsAre(other));
}

TEST(WaitPolicy, GivesOneThatHasJustStoppedComputingTheLimitOfAWait) {
  WaitPolicy policy = three_unequal();
  policy.on_heartbeat(slow, {}, start + 500s);
  EXPECT_EQ(policy.decide(report(fast, {slow}, 545s), start + 545s).more, 15s);
  EXPECT_THAT(policy.decide(report(fast, {slow}, 560s), start + 560s).missing, ElementsAre(slow));
}

TEST(WaitPolicy, KeepsToTheLimitOfAWaitThatUsuallyTakesLong) {
  WaitPolicy policy = three_workers();
  WaitPolicy::Report longer = report(fast, {other}, 60s);
  longer.limit = 100s;
  EXPECT_EQ(policy.decide(longer, start + 61s).more, 30s);
  longer.waited = 90s;
  EXPECT_EQ(policy.decide(longer, start + 91s).more, 10s);
  longer.waited = 100s;
  EXPECT_THAT(policy.decide(longer, start + 101s).missing, ElementsAre(other));
}

TEST(WaitPolicy, DoesNotExcuseAServerByWorkersThatCompute) {
  WaitPolicy policy = three_unequal();
  EXPECT_EQ(policy.decide(report(fast, {}, 30s), start + 31s).more, 30s);
  const auto verdict = policy.decide(report(fast, {}, 60s), start + 61s);
  EXPECT_FALSE(verdict.more);
  EXPECT_THAT(verdict.missing, IsEmpty());
}

TEST(WaitPolicy, ForgetsThoseThatAreGone) {
  WaitPolicy policy = three_unequal();
  policy.gone(slow);
  EXPECT_TRUE(policy.decide(report(fast, {slow}, 60s), start + 61s).more)
      << "the group will change";
  EXPECT_THAT(policy.decide(report(fast, {slow, other}, 60s), start + 10061s).missing,
              ElementsAre(other));
  EXPECT_EQ(policy.watch(slow), nullptr);
}

constexpr NodeId server{4};

wire::Heartbeat standing_by() {
  wire::Heartbeat heartbeat;
  heartbeat.set_standing_by(true);
  return heartbeat;
}

/// Passes in a heartbeat each second from `from` to `to`.
void beat(WaitPolicy& policy, NodeId node, const wire::Heartbeat& heartbeat, Duration from,
          Duration to) {
  for (Duration when = from; when <= to; when += 1s) {
    policy.on_heartbeat(node, heartbeat, start + when);
  }
}

TEST(WaitPolicy, FindsAWorkerThatHangsWithoutAReport) {
  WaitPolicy policy = three_unequal();
  beat(policy, other, computing(0.5, 1), 2s, 61s);
  EXPECT_THAT(policy.hanging_alone({}, start + 61s + 999ms), IsEmpty());
  EXPECT_THAT(policy.hanging_alone({}, start + 62s), ElementsAre(other));
}

TEST(WaitPolicy, TakesAProcessThatWasStoppedForNoHang) {
  WaitPolicy policy = three_unequal();
  policy.on_heartbeat(other, computing(0.5, 1), start + 2s);
  EXPECT_THAT(policy.hanging_alone({}, start + 1h), IsEmpty());
  beat(policy, other, computing(0.5, 1), 3600s, 3650s);
  EXPECT_THAT(policy.hanging_alone({}, start + 3650s), IsEmpty());
  beat(policy, other, computing(0.5, 1), 3651s, 3660s);
  EXPECT_THAT(policy.hanging_alone({}, start + 3660s), ElementsAre(other));
}

TEST(WaitPolicy, FindsAnIdleWorkerOnlyWhereNobodyElseWaitsForIt) {
  WaitPolicy policy = three_workers();
  beat(policy, fast, standing_by(), 0s, 89s);
  beat(policy, other, {}, 0s, 89s);
  EXPECT_TRUE(policy.decide(report(slow, {}, 30s), start + 30s).more);
  EXPECT_TRUE(policy.decide(report(slow, {}, 59s), start + 89s).more) << "it reports its wait";
  EXPECT_THAT(policy.hanging_alone({}, start + 90s), IsEmpty());
  EXPECT_THAT(policy.hanging_alone({.workers = true}, start + 89s), IsEmpty());
  EXPECT_THAT(policy.hanging_alone({.workers = true}, start + 90s), ElementsAre(other));
  EXPECT_THAT(policy.hanging_alone({.workers = true, .starting = true}, start + 90s), IsEmpty());
}

TEST(WaitPolicy, FindsAServerThatHangs) {
  WaitPolicy policy = three_workers();
  policy.accessory_joined(server, start);
  beat(policy, server, standing_by(), 0s, 10s);
  beat(policy, server, {}, 11s, 69s);
  EXPECT_THAT(policy.hanging_alone({}, start + 69s), IsEmpty());
  EXPECT_THAT(policy.hanging_alone({}, start + 70s), ElementsAre(server));
}

TEST(WaitPolicy, NamesAServerThatLivesAndDoesNotAnswer) {
  WaitPolicy policy = three_workers();
  policy.accessory_joined(server, start);
  WaitPolicy::Report for_server = report(fast, {}, 60s);
  for_server.servers = {server};
  EXPECT_EQ(policy.decide(for_server, start + 60s).more, 30s);
  for_server.waited = 120s;
  EXPECT_THAT(policy.decide(for_server, start + 120s).missing, ElementsAre(server));
}

TEST(WaitPolicy, NamesTheServerAndNotTheWorkersThatWaitForItAsWell) {
  WaitPolicy policy = three_workers();
  policy.accessory_joined(server, start);
  const auto decide = [&](NodeId from, std::vector<NodeId> awaited, Duration waited) {
    WaitPolicy::Report held = report(from, std::move(awaited), waited);
    held.servers = {server};
    return policy.decide(held, start + waited);
  };
  for (const Duration waited : {30s, 60s, 90s}) {
    EXPECT_TRUE(decide(fast, {other, slow}, waited).more) << to_seconds(waited);
    EXPECT_TRUE(decide(other, {fast, slow}, waited).more) << to_seconds(waited);
    EXPECT_TRUE(decide(slow, {fast, other}, waited).more) << to_seconds(waited);
  }
  EXPECT_THAT(decide(fast, {other, slow}, 120s).missing, ElementsAre(server));
}

TEST(WaitPolicy, BlamesAFailedWaitOnOneThatNeitherComputesNorWaits) {
  WaitPolicy policy = three_unequal();
  EXPECT_EQ(policy.blame(fast, slow, start + 61s), other) << "the slow one computes in time";
  EXPECT_EQ(policy.blame(fast, other, start + 61s), other);
  EXPECT_TRUE(policy.decide(report(other, {slow}, 59s), start + 60s).more);
  EXPECT_EQ(policy.blame(fast, slow, start + 61s), std::nullopt);
}

TEST(WaitPolicy, KnowsWhatPreventsTheRequestedEnd) {
  WaitPolicy policy = three_workers();
  beat(policy, fast, computing(0.01), 0s, 1s);
  beat(policy, other, computing(0.5), 0s, 1s);
  beat(policy, slow, standing_by(), 0s, 1s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 1s), IsEmpty());
  beat(policy, fast, computing(0.01), 2s, 2s);
  beat(policy, other, computing(0.5), 2s, 2s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 2s), ElementsAre(fast)) << "20 times 0.01 s";
  beat(policy, fast, computing(0.5, 1), 2s, 4s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 4s), ElementsAre(other)) << "it is silent";
}

TEST(StepWatch, FindsAMemberThatTakesNoMessages) {
  StepWatch watch(minute, start);
  const auto beat_until = [&](std::uint64_t pings, Duration from, Duration until) {
    wire::Heartbeat status = heartbeat({.computing = false});
    status.set_pings(pings);
    for (Duration at = from; at <= until; at += 200ms) {
      watch.on_heartbeat(status, start + at);
    }
  };
  watch.pinged(1, start);
  beat_until(0, 0s, 10s);
  EXPECT_EQ(watch.deaf_for(start + 10s), 0s) << "it starts up";
  beat_until(1, 10s, 12s);
  watch.pinged(2, start + 12s);
  beat_until(1, 12s, 13s);
  EXPECT_EQ(watch.deaf_for(start + 13s), 1s);
  EXPECT_FALSE(watch.is_deaf(start + 13s));
  watch.pinged(3, start + 13s);
  beat_until(1, 13s, 15s);
  EXPECT_EQ(watch.deaf_for(start + 15s), 3s);
  EXPECT_TRUE(watch.is_deaf(start + 15s));
  EXPECT_EQ(watch.deaf_for(start + 60s), 4s) << "silence is not deafness";
  beat_until(2, 60s, 60s);
  EXPECT_EQ(watch.deaf_for(start + 60s), 0s) << "it is late";
  beat_until(3, 61s, 61s);
  EXPECT_EQ(watch.deaf_for(start + 90s), 0s);
}

TEST(WaitPolicy, NamesAMemberThatTakesNoMessages) {
  WaitPolicy policy = three_unequal();
  policy.accessory_joined(server, start);
  const auto show = [&](NodeId node, std::uint64_t pings, Duration when) {
    wire::Heartbeat status = standing_by();
    status.set_pings(pings);
    policy.on_heartbeat(node, status, start + when);
  };
  for (int second = 0; second <= 60; ++second) {
    const auto number = static_cast<std::uint64_t>(second) + 1;
    for (const NodeId node : {fast, slow}) {
      show(node, number, second * 1s);
    }
    show(other, std::min<std::uint64_t>(number, 21), second * 1s);  // stops at 21
    show(server, std::min<std::uint64_t>(number, 31), second * 1s);
    policy.pinged(number + 1, start + second * 1s);
    if (second == 23) {
      EXPECT_THAT(policy.preventing_end(1500ms, start + 23s), ElementsAre(other));
    }
  }
  EXPECT_THAT(policy.decide(report(fast, {slow}, 40s), start + 60s).missing, ElementsAre(other));
  EXPECT_THAT(policy.hanging_alone({}, start + 60s), IsEmpty());
  EXPECT_THAT(policy.hanging_alone({}, start + 61s), IsEmpty());
}

TEST(WaitPolicy, NamesTheServerOrTheEarliestStepAmongMembersWithoutProgressAtTheEnd) {
  WaitPolicy policy = three_workers();
  policy.accessory_joined(server, start);
  const auto waiting = [](std::uint64_t step) {
    wire::Heartbeat heartbeat;
    heartbeat.set_phase("synchronization");
    heartbeat.set_step(step);
    return heartbeat;
  };
  beat(policy, fast, waiting(8), 1s, 4s);
  beat(policy, other, waiting(7), 1s, 4s);
  beat(policy, slow, waiting(8), 1s, 4s);
  beat(policy, server, standing_by(), 1s, 4s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 4s), ElementsAre(other));
  beat(policy, server, {}, 4s, 5s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 5s), IsEmpty()) << "it may serve";
  for (const NodeId node : {fast, other, slow}) {
    beat(policy, node, waiting(8), 5s, 6s);
  }
  beat(policy, server, {}, 5s, 6s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 6s), ElementsAre(server));
  wire::Heartbeat shows_that_it_waits = waiting(8);
  shows_that_it_waits.set_waiting(true);
  wire::Heartbeat server_waits;
  server_waits.set_waiting(true);
  beat(policy, server, server_waits, 6s, 7s);
  beat(policy, fast, shows_that_it_waits, 6s, 7s);
  beat(policy, other, shows_that_it_waits, 6s, 7s);
  beat(policy, slow, waiting(8), 6s, 7s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 7s), ElementsAre(slow));
}

TEST(WaitPolicy, LetsAServerSaveAtTheRequestedEnd) {
  WaitPolicy policy = three_workers();
  policy.accessory_joined(server, start);
  for (const NodeId node : {fast, other, slow}) {
    policy.gone(node);
  }
  beat(policy, server, standing_by(), 1s, 2s);
  wire::Heartbeat saving;
  saving.set_phase("snapshot");
  beat(policy, server, saving, 2s, 11s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 11s), IsEmpty());
  beat(policy, server, saving, 11s, 12s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 12s), ElementsAre(server));
}

TEST(WaitPolicy, FindsAWorkerThatTrainsOnAfterTheRequestToEnd) {
  WaitPolicy policy = three_workers();
  const auto rounds = [&](NodeId node, double done, std::uint64_t step, Duration when) {
    MemberStatus status{.computing = true, .expected = 10ms};
    status.metrics = MetricValues(all_metrics());
    status.metrics.set(Metric::rounds, done);
    wire::Heartbeat heartbeat = to_wire(status);
    heartbeat.set_step(step);
    policy.on_heartbeat(node, heartbeat, start + when);
  };
  rounds(fast, 100, 1, 1s);
  rounds(slow, 100, 1, 1s);
  policy.end_expected();
  rounds(fast, 110, 2, 2s);
  rounds(slow, 111, 2, 2s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 2s), ElementsAre(slow));
}

TEST(WaitPolicy, LetsAWorkerComputeToTheRequestedEndWhileOthersWait) {
  wire::Heartbeat synchronizing;
  synchronizing.set_phase("synchronization");
  WaitPolicy policy = three_unequal();
  beat(policy, fast, synchronizing, 1s, 9s);
  beat(policy, other, synchronizing, 1s, 9s);
  beat(policy, slow, computing(500), 1s, 9s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 9s), IsEmpty());
  beat(policy, slow, synchronizing, 9s, 9s);
  EXPECT_THAT(policy.preventing_end(1500ms, start + 10s), IsEmpty());
  for (const NodeId node : {fast, other, slow}) {
    beat(policy, node, synchronizing, 10s, 11s);
  }
  EXPECT_THAT(policy.preventing_end(1500ms, start + 11s), ElementsAre(fast, other, slow));
}

}  // namespace
}  // namespace syncopate
