// Goal:   the pacer decides when each worker synchronizes, according to each of its two rules, and
//         refuses reports that make no sense.
// Method: a few devices whose schedules are worked out by hand; decisions are compared as text.

#include "pacer/pacer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

TimePoint at(Duration since_start) {
  return TimePoint{} + since_start;
}

/// Returns the decisions as text: "0: round 2 after 3, 64 samples, slowest".
Words in_words(const Paces& paces) {
  Words words;
  for (const Pace& pace : paces) {
    const std::string synchronizes =
        pace.sync_after ? fmt::format("after {}", *pace.sync_after) : "open";
    words.push_back(fmt::format("{}: round {} {}, {} samples, {}", pace.worker.value, pace.round,
                                synchronizes, pace.step_samples, words_for(pace.reason)));
  }
  return words;
}

/// A pacer whose workers report steps of the sizes that the pacer decides.
class Paced {
 public:
  explicit Paced(Pacer::Options options) : pacer(std::move(options)) {}

  Words step(std::uint32_t worker, Duration took, Duration now) {
    return report(worker, took, now, false);
  }
  Words synchronize(std::uint32_t worker, Duration took, Duration now, Duration communicated = 0s) {
    return report(worker, took, now, true, communicated);
  }

  Pacer pacer;
  std::uint64_t samples_to_do = 0;
  bool ends = false;
  bool waits = false;

 private:
  Words report(std::uint32_t worker, Duration took, Duration now, bool synchronizes,
               Duration communicated = 0s) {
    const PacerState::Worker before = pacer.state().workers[worker];
    return in_words(pacer.stepped(Rank{worker},
                                  {.round = before.round,
                                   .steps = before.steps + 1,
                                   .samples = before.step_samples,
                                   .took = took,
                                   .synchronizes = synchronizes,
                                   .communicated = communicated,
                                   .samples_to_do = samples_to_do,
                                   .ends = ends,
                                   .waits = waits},
                                  at(now)));
  }
};

/// Returns two devices under the paper's rule. The fast one, with 1 s for a mini-batch, has
/// synchronized in round 1.
Paced papers_two(bool overlap) {
  Paced paced({.batch_sizes = {64, 64}, .rule = Pacer::Rule::paper, .overlap = overlap});
  EXPECT_THAT(paced.synchronize(0, 1s, 1s), IsEmpty());
  return paced;
}

TEST(PacerByThePaper, BeginsWithOneStepOfEach) {
  const FirstPace first = first_pace(Pacer::Rule::paper, 64);
  EXPECT_EQ(first.step_samples, 64);
  EXPECT_EQ(first.sync_after, 1);
}

TEST(PacerByThePaper, MakesTheFastOneArriveJustBeforeTheSlowest) {
  Paced paced = papers_two(false);
  EXPECT_THAT(paced.synchronize(1, 4s, 4s), ElementsAre("1: round 2 after 1, 64 samples, slowest"));
  EXPECT_THAT(paced.step(0, 1s, 5s), IsEmpty());
  EXPECT_THAT(paced.step(0, 1s, 6s),
              ElementsAre("0: round 2 after 3, 64 samples, no time for another step"))
      << "another step ends at 8 s, when the slowest does, and so within the margin";
}

TEST(PacerByThePaper, LeavesAMarginBeforeTheSlowest) {
  Paced paced = papers_two(false);
  paced.synchronize(1, 4s, 4s);
  paced.step(0, 1s, 5s);
  EXPECT_THAT(paced.step(0, 1s, 5999ms), IsEmpty()) << "another step ends at 7.999 s, in time";
  Paced later = papers_two(false);
  later.synchronize(1, 4s, 4s);
  later.step(0, 1s, 5s);
  EXPECT_THAT(later.step(0, 1s, 5999ms + 1us),
              ElementsAre("0: round 2 after 3, 64 samples, no time for another step"));
}

TEST(PacerByThePaper, TakesTheMarginThatItIsGiven) {
  const auto decisions_at = [](Duration end_of_step) {
    Paced paced(
        {.batch_sizes = {64, 64}, .rule = Pacer::Rule::paper, .margin = 500ms, .overlap = false});
    paced.synchronize(0, 1s, 1s);
    paced.synchronize(1, 4s, 4s);
    paced.step(0, 1s, 5s);
    return paced.step(0, 1s, end_of_step);
  };
  // The slowest ends at 8 s. The fast one is in its next step; one more step ends 1 s after that.
  EXPECT_THAT(decisions_at(5499ms), IsEmpty())
      << "ends at 7.499 s, more than the margin before 8 s";
  EXPECT_THAT(decisions_at(5501ms),
              ElementsAre("0: round 2 after 3, 64 samples, no time for another step"));
  EXPECT_THROW(Pacer({.batch_sizes = {64}, .margin = -1ms}), ConfigError);
}

TEST(PacerByThePaper, CountsTheSynchronizationWhereDevicesWaitForIt) {
  Paced paced = papers_two(false);
  paced.synchronize(1, 4s, 4s);
  for (const Duration now : {5s, 6s}) paced.step(0, 1s, now);
  paced.synchronize(0, 1s, 7s, 500ms);
  EXPECT_THAT(paced.synchronize(1, 4s, 8s), ElementsAre("1: round 3 after 1, 64 samples, slowest"));
  // Both begin at 8.5 s, so the slowest ends at 12.5 s.
  EXPECT_THAT(paced.step(0, 1s, 9500ms), IsEmpty());
  EXPECT_THAT(paced.step(0, 1s, 10500ms),
              ElementsAre("0: round 3 after 3, 64 samples, no time for another step"));
}

TEST(PacerByThePaper, LetsOthersComputeWhileTheSumTravels) {
  Paced paced = papers_two(true);
  for (const Duration now : {2s, 3s}) EXPECT_THAT(paced.step(0, 1s, now), IsEmpty());
  EXPECT_THAT(paced.synchronize(1, 4s, 3500ms),
              ElementsAre("1: round 2 after 1, 64 samples, slowest"));
  for (const Duration now : {4s, 5s}) EXPECT_THAT(paced.step(0, 1s, now), IsEmpty());
  EXPECT_THAT(paced.step(0, 1s, 6s),
              ElementsAre("0: round 2 after 6, 64 samples, no time for another step"));
}

TEST(PacerByThePaper, SendsOthersAfterTheSlowestThatCameEarly) {
  Paced paced = papers_two(false);
  paced.synchronize(1, 4s, 4s);
  paced.step(0, 1s, 5s);
  EXPECT_THAT(paced.synchronize(1, 1s, 5500ms),
              ElementsAre("0: round 2 after 2, 64 samples, with the slowest"));
}

TEST(PacerByThePaper, TakesAnOverdueSlowestForOneThatComesNow) {
  Paced paced({.batch_sizes = {64, 64, 64}, .rule = Pacer::Rule::paper, .overlap = false});
  paced.synchronize(0, 1s, 1s);
  paced.synchronize(2, 500ms, 1s);
  paced.synchronize(1, 4s, 4s);
  paced.step(0, 1s, 5s);
  EXPECT_FALSE(paced.pacer.state().workers[1].overdue);
  EXPECT_THAT(in_words(paced.pacer.time_passed(at(9s))),
              ElementsAre("0: round 2 after 2, 64 samples, no time for another step",
                          "2: round 2 after 1, 64 samples, no time for another step"));
  EXPECT_TRUE(paced.pacer.state().workers[1].overdue);
}

TEST(PacerByThePaper, GoesOnWithoutTheDead) {
  Paced paced = papers_two(false);
  EXPECT_THAT(in_words(paced.pacer.left(Rank{1}, at(2s))),
              ElementsAre("0: round 2 after 1, 64 samples, slowest"));
  EXPECT_THAT(in_words(paced.pacer.stepped(Rank{1}, {.round = 1, .steps = 1}, at(3s))), IsEmpty())
      << "a report on its way when its worker died";
}

TEST(PacerByThePaper, WaitsForANewcomerUntilItIsKnown) {
  Paced paced = papers_two(false);
  paced.pacer.left(Rank{1}, at(2s));
  EXPECT_THAT(in_words(paced.pacer.joined(Rank{1}, at(2500ms))), IsEmpty());
  EXPECT_EQ(paced.pacer.state().workers[1].round, 2);
  paced.synchronize(0, 1s, 3s);
  EXPECT_EQ(paced.pacer.state().round, 2);
  EXPECT_THAT(paced.synchronize(1, 3s, 5500ms),
              ElementsAre("1: round 3 after 1, 64 samples, slowest"));
  EXPECT_THROW(paced.pacer.joined(Rank{1}, at(6s)), InternalError);
}

/// Returns two devices with 1 ms and 50 ms a sample and rounds of 200 ms, both with a finished
/// probe of 4 samples.
Paced timed_two(bool overlap) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 200ms, .overlap = overlap});
  EXPECT_THAT(paced.step(0, 4ms, 4ms), ElementsAre("0: round 1 open, 64 samples, resized"));
  for (const Duration now : {68ms, 132ms, 196ms}) EXPECT_THAT(paced.step(0, 64ms, now), IsEmpty());
  EXPECT_THAT(paced.step(1, 200ms, 200ms),
              ElementsAre("1: round 1 after 2, 4 samples, no time for another step"))
      << "F is 400 ms";
  return paced;
}

TEST(PacerByTime, BeginsWithProbesAndOneSynchronizationWhenAllAreKnown) {
  const FirstPace first = first_pace(Pacer::Rule::timed, 64);
  EXPECT_EQ(first.step_samples, 4);
  EXPECT_EQ(first.sync_after, std::nullopt);
}

TEST(PacerByTime, BeginsWithTwoSamplesOfAGlobalBatch) {
  EXPECT_EQ(first_pace(Pacer::Rule::timed, 64, 1).step_samples, 2);
  EXPECT_EQ(first_pace(Pacer::Rule::timed, 64, 16).step_samples, 16) << "its least part";
  EXPECT_EQ(first_pace(Pacer::Rule::timed, 1, 1).step_samples, 1);
  EXPECT_EQ(first_pace(Pacer::Rule::paper, 64, 1).step_samples, 64);
}

TEST(PacerByTime, DividesAGlobalBatchBySpeed) {
  Paced paced({.batch_sizes = {64, 64, 64}, .longest_period = 64, .global_batch = 64});
  paced.step(0, 2ms, 2ms);
  paced.step(1, 2ms, 2ms);
  EXPECT_THAT(paced.step(2, 100ms, 100ms),
              testing::Contains("0: round 1 open, 32 samples, resized"));
  EXPECT_EQ(paced.pacer.state().round_time, 32ms);
  EXPECT_EQ(paced.pacer.state().workers[2].period, 4) << "two samples in 100 ms";
}

TEST(PacerByTime, GivesNoDeviceAPartThatItIsSlowWith) {
  Paced paced({.batch_sizes = {64, 64}, .longest_period = 64, .global_batch = 64});
  paced.pacer.expect_least(Rank{0}, 44);
  paced.step(0, 2ms, 2ms);
  EXPECT_THAT(paced.step(1, 2ms, 2ms), testing::Contains("0: round 1 open, 44 samples, resized"));
  paced.pacer.left(Rank{0}, 3ms + TimePoint{});
  paced.pacer.joined(Rank{0}, 4ms + TimePoint{});
  paced.step(0, 2ms, 6ms);
  EXPECT_EQ(paced.pacer.state().workers[0].step_samples, 44U) << "still known when it is back";
}

TEST(PacerByTime, MeetsAfterTheStepThatEndsNearestToTheEnd) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 200ms, .overlap = true});
  paced.step(0, 4ms, 4ms);
  paced.step(0, 64ms, 68ms);
  EXPECT_THAT(paced.step(1, 200ms, 100ms),
              ElementsAre("1: round 1 after 2, 4 samples, no time for another step"))
      << "F is 300 ms";
  EXPECT_THAT(paced.step(0, 64ms, 132ms), IsEmpty());
  EXPECT_THAT(paced.step(0, 64ms, 196ms), IsEmpty()) << "ends: 260 ms, 324 ms";
  EXPECT_THAT(paced.step(0, 64ms, 260ms),
              ElementsAre("0: round 1 after 6, 64 samples, no time for another step"));
}

TEST(PacerByTime, MeetsAfterTheLastStepThatEndsInTimeWithoutOverlap) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 200ms, .overlap = false});
  paced.step(0, 4ms, 4ms);
  paced.step(0, 64ms, 68ms);
  paced.step(1, 200ms, 100ms);
  paced.step(0, 64ms, 132ms);
  EXPECT_THAT(paced.step(0, 64ms, 196ms),
              ElementsAre("0: round 1 after 5, 64 samples, no time for another step"))
      << "ends: 260 ms, 324 ms; F is 300 ms";
}

TEST(PacerByTime, PlansTheNextRoundFromTheLastEntryOrTheLastEnd) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 200ms, .overlap = true});
  paced.step(0, 4ms, 90ms);
  paced.step(1, 200ms, 100ms);
  paced.synchronize(0, 64ms, 290ms);
  EXPECT_THAT(paced.synchronize(1, 200ms, 290ms),
              ElementsAre("1: round 2 after 1, 4 samples, no time for another step"))
      << "F is 500 ms: 200 ms after the end of round 1, 300 ms";
  paced.step(0, 64ms, 400ms);
  EXPECT_THAT(paced.step(0, 64ms, 464ms),
              ElementsAre("0: round 2 after 3, 64 samples, no time for another step"));
  paced.synchronize(0, 64ms, 520ms);
  paced.synchronize(1, 200ms, 530ms);
  EXPECT_THAT(paced.step(0, 64ms, 600ms), IsEmpty()) << "F is 730 ms: 200 ms after the last entry";
  EXPECT_THAT(paced.step(0, 64ms, 664ms),
              ElementsAre("0: round 3 after 3, 64 samples, no time for another step"));
}

TEST(PacerByTime, ChoosesTheRoundByTheProbeOfTheSlowest) {
  Paced paced({.batch_sizes = {64, 64, 64}});
  EXPECT_THAT(paced.step(0, 4ms, 4ms), ElementsAre("0: round 1 open, 64 samples, resized"))
      << "one probe is enough for a device that is not the slowest";
  EXPECT_THAT(paced.step(1, 20ms, 20ms), ElementsAre("1: round 1 open, 12 samples, resized"))
      << "what fits into the whole mini-batch of the fastest so far, 64 ms";
  EXPECT_THAT(paced.step(2, 200ms, 200ms),
              ElementsAre("1: round 1 open, 40 samples, resized",
                          "2: round 1 after 2, 4 samples, no time for another step"));
  EXPECT_EQ(paced.pacer.state().round_time, 200ms);
}

TEST(PacerByTime, SizesStepsForTheTimeThatTheSynchronizationLeaves) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 200ms, .overlap = false});
  paced.step(0, 4ms, 4ms);
  EXPECT_THAT(paced.step(1, 20ms, 20ms),
              ElementsAre("1: round 1 after 2, 40 samples, no time for another step"));
  paced.synchronize(0, 64ms, 68ms);
  paced.synchronize(1, 200ms, 220ms);
  EXPECT_THAT(paced.synchronize(0, 64ms, 300ms, 50ms),
              ElementsAre("1: round 2 after 1, 30 samples, resized"));
}

TEST(PacerByTime, TellsNobodyWhileOneIsUnknown) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 100ms});
  EXPECT_THAT(paced.step(0, 4ms, 64ms), ElementsAre("0: round 1 open, 64 samples, resized"));
  for (int step = 2; step <= 50; ++step) {
    EXPECT_THAT(paced.step(0, 64ms, step * 64ms), IsEmpty());
  }
  EXPECT_THAT(in_words(paced.pacer.left(Rank{1}, at(3300ms))), IsEmpty()) << "F is 3.4 s";
  EXPECT_THAT(paced.step(0, 64ms, 3328ms),
              ElementsAre("0: round 1 after 52, 64 samples, no time for another step"));
}

TEST(PacerByTime, RepacesADeviceThatBecameTenTimesSlower) {
  Paced paced = timed_two(true);
  for (const Duration now : {264ms, 328ms}) paced.step(0, 64ms, now);
  EXPECT_EQ(paced.pacer.state().workers[0].sync_after, 7);
  EXPECT_THAT(paced.synchronize(0, 640ms, 968ms), IsEmpty()) << "one may be an exception";
  EXPECT_THAT(paced.step(0, 640ms, 1608ms), ElementsAre("0: round 2 open, 20 samples, resized"));
}

/// Both devices do a probe of 4 samples, then a mini-batch.
TEST(PacerByTime, EndsARoundWhenAWorkerWantsTheJobToEnd) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 1000s});
  paced.step(0, 1s, 1s);
  paced.step(1, 1s, 1s);
  EXPECT_THAT(paced.step(0, 16s, 17s), IsEmpty());
  paced.ends = true;
  EXPECT_THAT(paced.step(1, 16s, 17s), ElementsAre("0: round 1 after 3, 64 samples, the job ends",
                                                   "1: round 1 after 3, 64 samples, the job ends"));
}

TEST(PacerByTime, EndsARoundWhereAllWorkersWait) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 1000s});
  paced.step(0, 1s, 1s);
  paced.step(1, 1s, 1s);
  paced.waits = true;
  EXPECT_THAT(paced.step(0, 0s, 17s), IsEmpty()) << "the other one has samples";
  EXPECT_THAT(paced.step(1, 0s, 17s),
              ElementsAre("0: round 1 after 3, 64 samples, all workers wait",
                          "1: round 1 after 3, 64 samples, all workers wait"));
}

TEST(PacerByTime, EndsARoundWithTheSamplesOfTheJob) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 1000s});
  paced.samples_to_do = 4 + 4 + 64 + 64;
  EXPECT_THAT(paced.step(0, 1s, 1s), ElementsAre("0: round 1 open, 64 samples, resized"));
  EXPECT_THAT(paced.step(1, 1s, 1s), ElementsAre("1: round 1 open, 64 samples, resized"));
  EXPECT_THAT(paced.step(0, 16s, 17s), IsEmpty());
  EXPECT_THAT(paced.step(1, 16s, 17s), ElementsAre("0: round 1 after 3, 64 samples, the job ends",
                                                   "1: round 1 after 3, 64 samples, the job ends"));
  EXPECT_THAT(paced.synchronize(0, 16s, 33s), IsEmpty());
  EXPECT_THAT(paced.synchronize(1, 16s, 33s),
              ElementsAre("0: round 2 after 1, 64 samples, the job ends",
                          "1: round 2 after 1, 64 samples, the job ends"));
}

TEST(PacerByTime, DoesNotCountSamplesThatWereLostWithAWorker) {
  Paced paced({.batch_sizes = {64, 64}, .round_time = 1000s});
  paced.samples_to_do = 4 + 4 + 64;
  paced.step(0, 1s, 1s);
  paced.step(1, 1s, 1s);
  EXPECT_THAT(in_words(paced.pacer.left(Rank{1}, at(1s))), IsEmpty());
  EXPECT_THAT(paced.step(0, 16s, 17s), IsEmpty()) << "68 of 72";
  EXPECT_THAT(paced.step(0, 16s, 33s), ElementsAre("0: round 1 after 4, 64 samples, the job ends"));
}

TEST(Pacer, ShowsWatchersWhatItKnows) {
  const Paced paced = timed_two(true);
  const PacerState state = paced.pacer.state();
  EXPECT_EQ(state.round, 1);
  EXPECT_EQ(state.round_time, 200ms);
  EXPECT_DOUBLE_EQ(state.workers[0].step_seconds, 0.064);
  EXPECT_DOUBLE_EQ(state.workers[1].sample_seconds, 0.05);
  EXPECT_EQ(state.workers[0].steps, 4);
  EXPECT_EQ(state.workers[0].reason, PaceReason::resized);
  EXPECT_EQ(state.workers[1].reason, PaceReason::no_time_for_another);
  EXPECT_EQ(state.workers[1].sync_after, 2);
}

TEST(Pacer, GoesOnWhereAnotherEnded) {
  const Pacer pacer({.batch_sizes = {64, 64}, .done = 12});
  EXPECT_EQ(pacer.state().round, 13);
  EXPECT_EQ(pacer.state().workers[1].round, 13);
}

TEST(Pacer, RefusesWhatMakesNoSense) {
  Pacer pacer({.batch_sizes = {64, 64}, .round_time = 1s});
  const auto report = [&](std::uint32_t rank, const StepReport& said) {
    return pacer.stepped(Rank{rank}, said, at(1s));
  };
  EXPECT_THROW(report(2, {.round = 1, .steps = 1}), ProtocolError);
  EXPECT_THROW(report(0, {.round = 2, .steps = 1}), ProtocolError);
  EXPECT_THROW(report(0, {.round = 1, .steps = 0}), ProtocolError);
  EXPECT_THROW(report(0, {.round = 1, .steps = 1, .took = -1s}), ProtocolError);
  report(0, {.round = 1, .steps = 1, .samples = 4, .took = 1s, .synchronizes = true});
  EXPECT_THROW(report(0, {.round = 1, .steps = 2}), ProtocolError);
  EXPECT_THROW(report(0, {.round = 2, .steps = 1, .synchronizes = true}), ProtocolError)
      << "worker 1 has not met in round 1";
  EXPECT_THROW(Pacer({.batch_sizes = {64, 0}}), ConfigError);
  EXPECT_THROW(Pacer({.batch_sizes = {64}, .round_time = 0s}), ConfigError);
}

}  // namespace
}  // namespace syncopate
