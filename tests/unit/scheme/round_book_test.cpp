// Goal:   the workers of a round agree on who is in it, for all periods that they adopt. The
//         change of a worker that has missed rounds has the weight of its samples among those of
//         all.
// Method: thousands of rounds of random periods, in which each worker has only the book that it
//         writes in its own rounds; weights by hand.

#include "scheme/round_book.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "pacer/pacer_client.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

StepInfo info(std::uint64_t samples, const Attendance& attendance) {
  return {.samples = samples,
          .loss_sum = 2.0 * static_cast<double>(samples),
          .weight = static_cast<double>(samples),
          .attendance = attendance};
}

std::vector<Rank> ranks_below(std::uint32_t count) {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    ranks.push_back(Rank{rank});
  }
  return ranks;
}

std::vector<Rank> members(const RoundBook& book, std::uint64_t round, std::uint32_t workers) {
  std::vector<Rank> ranks = ranks_below(workers);
  std::erase_if(ranks, [&](Rank rank) { return !book.has(Round{round}, rank); });
  return ranks;
}

/// A worker with its own book, which it writes only in rounds that it is in.
struct BookOfOne {
  RoundBook book;
  std::uint64_t next;
  std::uint64_t samples = 0;  ///< of all workers, as its rounds say
};

/// The workers of a round, and what they say in it.
struct RoundOfSome {
  std::vector<Rank> present;
  std::vector<StepInfo> infos;
};

/// Those whose next round it is; each but the first wants a period at random.
RoundOfSome drawn(const std::vector<BookOfOne>& workers, std::uint64_t round, std::uint64_t first,
                  Random& random) {
  RoundOfSome drawn;
  for (const Rank rank : ranks_below(static_cast<std::uint32_t>(workers.size()))) {
    const BookOfOne& worker = workers[rank.value];
    if (worker.next == round) {
      const auto wanted = static_cast<std::uint32_t>(1U << random.below(6));
      const std::uint32_t period = rank.value == 0 ? 1 : adopted_period(round, first, wanted);
      drawn.present.push_back(rank);
      drawn.infos.push_back(info(1 + random.below(9), worker.book.attendance(period)));
    }
  }
  return drawn;
}

/// Each of them writes the round into its book, and knows the samples of all so far.
void complete(std::vector<BookOfOne>& workers, std::uint64_t round, const RoundOfSome& drawn,
              std::uint64_t samples) {
  SyncRound sync_round = combine_step_infos(drawn.infos);
  sync_round.round = Round{round};
  const auto count = static_cast<std::uint32_t>(workers.size());
  for (std::size_t index = 0; index < drawn.present.size(); ++index) {
    BookOfOne& worker = workers[drawn.present[index].value];
    ASSERT_EQ(members(worker.book, round, count), drawn.present)
        << "worker " << drawn.present[index].value << ", round " << round;
    SyncRound own = sync_round;
    add_missed_rounds(own, drawn.infos, drawn.infos[index]);
    worker.samples += own.samples;
    ASSERT_EQ(worker.samples, samples) << "worker " << drawn.present[index].value;
    worker.book.complete(own, drawn.present, drawn.infos, drawn.present.size() == count);
    worker.next += drawn.infos[index].attendance->period;
  }
}

TEST(RoundBook, GivesAllWorkersOfARoundTheSameMembers) {
  constexpr std::uint32_t count = 6;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const std::uint64_t first = 1 + random.below(100);  // as in a run that is resumed
    std::vector<BookOfOne> workers(count, {.book = RoundBook(count), .next = first});
    std::uint64_t samples = 0;
    for (std::uint64_t round = first; round < first + 300; ++round) {
      const RoundOfSome some = drawn(workers, round, first, random);
      samples += combine_step_infos(some.infos).samples;
      ASSERT_NO_FATAL_FAILURE(complete(workers, round, some, samples));
    }
  }
}

TEST(RoundBook, PutsAllWorkersIntoTheNextRoundAfterARestart) {
  RoundBook book(3);
  const std::vector<StepInfo> infos{info(1, {.period = 1}), info(1, {.period = 8}),
                                    info(1, {.period = 4})};
  SyncRound sync_round = combine_step_infos(infos);
  sync_round.round = Round{5};
  book.complete(sync_round, ranks_below(3), infos, true);
  EXPECT_EQ(members(book, 6, 3), std::vector{Rank{0}});
  book.restart(Round{5}, {});
  EXPECT_EQ(members(book, 6, 3), ranks_below(3));
  book.restart(Round{5}, {1, 4, 2});
  EXPECT_EQ(members(book, 6, 3), std::vector{Rank{0}});
  EXPECT_EQ(members(book, 7, 3), (std::vector{Rank{0}, Rank{2}}));
  EXPECT_EQ(members(book, 9, 3), ranks_below(3));
}

TEST(RoundBook, PutsAllWorkersIntoTheRoundAfterTheyAgreedOnACheckpoint) {
  RoundBook book(2);
  const std::vector<StepInfo> infos{info(1, {.period = 1}), info(1, {.period = 8})};
  SyncRound sync_round = combine_step_infos(infos);
  sync_round.round = Round{5};
  sync_round.agreed.checkpoint = true;
  book.complete(sync_round, ranks_below(2), infos, true);
  EXPECT_EQ(members(book, 6, 2), ranks_below(2));
}

TEST(RoundBook, IsReadByAWorkerWhoseRoundBroke) {
  RoundBook ahead(2);
  RoundBook behind(2);
  const auto complete = [](RoundBook& book, std::uint64_t round, std::uint32_t period) {
    const std::vector<StepInfo> infos{info(3, book.attendance(1)),
                                      info(4, book.attendance(period))};
    SyncRound sync_round = combine_step_infos(infos);
    sync_round.round = Round{round};
    book.complete(sync_round, ranks_below(2), infos, true);
  };
  complete(ahead, 1, 1);
  complete(behind, 1, 1);
  complete(ahead, 2, 4);
  ASSERT_EQ(ahead.packed().size(), ahead.packed_bytes());
  EXPECT_TRUE(behind.load(ahead.packed())) << "it was in round 1, which came before";
  EXPECT_EQ(behind.packed(), ahead.packed());
  EXPECT_EQ(members(behind, 3, 2), std::vector{Rank{0}});
  RoundBook far_behind(2);
  EXPECT_FALSE(far_behind.load(ahead.packed())) << "it had missed round 1";
  EXPECT_EQ(far_behind.attendance(1).last, 0U);
}

/// Two workers have been in round 9, a third one was last in round 5, after which all brought 90.
std::vector<StepInfo> with_one_that_missed_rounds() {
  const Attendance latest{.last = 9, .samples = 1090, .loss_sum = 700, .paused = 5ms};
  const Attendance earlier{.last = 5, .samples = 1000, .loss_sum = 650, .paused = 2ms};
  return {info(20, latest), info(10, latest), info(8, earlier)};
}

TEST(MissedRounds, GiveAWorkerTheWeightOfItsSamplesAmongThoseOfAllSince) {
  std::vector<StepInfo> infos = with_one_that_missed_rounds();
  weigh_missed_rounds(infos);
  EXPECT_EQ(infos[0].weight, 20);
  EXPECT_EQ(infos[1].weight, 10);
  const double total = total_weight(infos);
  EXPECT_NEAR(infos[2].weight / total, 8.0 / (90 + 20 + 10 + 8), 1e-12);
}

TEST(MissedRounds, ChangeNoWeightWhereThereAreNone) {
  std::vector<StepInfo> infos = with_one_that_missed_rounds();
  infos[2].attendance = infos[0].attendance;
  const std::vector<StepInfo> before = infos;
  weigh_missed_rounds(infos);
  for (std::size_t index = 0; index < infos.size(); ++index) {
    EXPECT_EQ(infos[index].weight, before[index].weight);
  }
}

TEST(MissedRounds, LeaveItsWeightToAWorkerThatIsTheOnlyOneWithSamples) {
  std::vector<StepInfo> infos = with_one_that_missed_rounds();
  for (const std::size_t index : {0, 1}) {
    infos[index].samples = 0;
    infos[index].weight = 0;
  }
  weigh_missed_rounds(infos);
  EXPECT_EQ(infos[2].weight, 8);
}

TEST(MissedRounds, AreAddedToWhatTheWorkerLearns) {
  const std::vector<StepInfo> infos = with_one_that_missed_rounds();
  const SyncRound here = combine_step_infos(infos);
  SyncRound of_the_first = here;
  add_missed_rounds(of_the_first, infos, infos[0]);
  EXPECT_EQ(samples_with(infos), 1090U + 38U);
  EXPECT_EQ(of_the_first.samples, 38U);
  EXPECT_EQ(of_the_first.paused, here.paused);
  SyncRound of_the_third = here;
  add_missed_rounds(of_the_third, infos, infos[2]);
  EXPECT_EQ(of_the_third.samples, 38U + 90U);
  EXPECT_DOUBLE_EQ(of_the_third.loss_sum, here.loss_sum + 50);
  EXPECT_EQ(of_the_third.paused, here.paused + 3ms);
}

}  // namespace
}  // namespace syncopate
