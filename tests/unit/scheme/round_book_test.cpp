// Goal:   every mini-batch enters one round, stale by no more than one update; every round ends, and
//         where workers wait, they wait for the slowest no longer than for one mini-batch.
// Method: hand-made entries; then thousands of clusters of random speeds in a virtual time of their own,
//         checked against a log of what entered which round.

#include "scheme/round_book.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

TEST(BatchCut, MakesMiniBatchesOfOneSizeButTheLast) {
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 8}.size()), 8);
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 8}.count()), 8);
  EXPECT_EQ((BatchCut{.batch_size = 10, .mini_batches = 8}.size()), 2);
  EXPECT_EQ((BatchCut{.batch_size = 10, .mini_batches = 8}.count()), 5);
  EXPECT_EQ((BatchCut{.batch_size = 3, .mini_batches = 8}.size()), 1);
  EXPECT_EQ((BatchCut{.batch_size = 3, .mini_batches = 8}.count()), 3);
}

RoundBook book_of(std::uint32_t mini_batches, Round done = {}) {
  return RoundBook({.batch_size = mini_batches, .mini_batches = mini_batches}, done);
}

TEST(RoundBook, IsDueWhenABatchIsFinished) {
  RoundBook book = book_of(3, Round{6});
  for (int mini_batch = 0; mini_batch < 3; ++mini_batch) {
    EXPECT_FALSE(book.due());
    EXPECT_EQ(book.finished_mini_batch(), 0);
  }
  EXPECT_TRUE(book.due());
  EXPECT_TRUE(book.signals());
  const auto contribution = book.contribute();
  EXPECT_EQ(contribution.round.value, 7);
  EXPECT_EQ(contribution.mini_batches, 3);
  EXPECT_FALSE(book.due());
}

TEST(RoundBook, IsDueAfterTheMiniBatchInHandWhenOthersSignal) {
  RoundBook book = book_of(3);
  book.heard(Round{1});
  EXPECT_FALSE(book.due()) << "it has nothing to bring";
  book.finished_mini_batch();
  EXPECT_TRUE(book.due());
  EXPECT_FALSE(book.signals()) << "they know";
  EXPECT_EQ(book.contribute().mini_batches, 1);
}

TEST(RoundBook, GoesOnWithTheRestOfItsBatch) {
  RoundBook book = book_of(3);
  book.heard(Round{1});
  book.finished_mini_batch();
  book.contribute();
  book.applied();
  book.finished_mini_batch();
  EXPECT_FALSE(book.due()) << "the signal was of the round before";
  book.finished_mini_batch();
  EXPECT_TRUE(book.due());
  EXPECT_EQ(book.contribute().mini_batches, 2);
}

TEST(RoundBook, BooksToTheNextRoundWhileTheSumTravels) {
  RoundBook book = book_of(1);
  book.finished_mini_batch();
  book.contribute();
  EXPECT_EQ(book.finished_mini_batch(), 1);
  EXPECT_FALSE(book.due()) << "a batch is finished, but the last sum is on its way";
  EXPECT_THROW(book.contribute(), InternalError);
}

TEST(RoundBook, IsDueWhenTheSumHasComeIfABatchWasFinishedMeanwhile) {
  RoundBook book = book_of(1);
  book.finished_mini_batch();
  book.contribute();
  EXPECT_EQ(book.finished_mini_batch(), 1);
  book.applied();
  EXPECT_TRUE(book.due());
  EXPECT_EQ(book.finished_mini_batch(), 0);
  EXPECT_EQ(book.contribute().mini_batches, 2);
}

TEST(RoundBook, HandsInWhatItHasWhenTrainingEnds) {
  RoundBook book = book_of(8);
  book.finished_mini_batch();
  EXPECT_FALSE(book.due());
  book.hurry();
  EXPECT_TRUE(book.due());
}

/// Workers of random speeds, which compute mini-batches, signal, and meet as their books say. A round's
/// sum is under way once all have contributed, and arrives `meeting` later.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed),
        overlap_(random_.below(2) == 0),
        mini_batches_(static_cast<std::uint32_t>(1 + random_.below(9))),
        latency_(0.01 * random_.uniform()),
        meeting_(0.2 * random_.uniform()) {
    workers_.reserve(6);
    for (std::uint64_t left = 1 + random_.below(6); left > 0; --left) {
      workers_.push_back({.book = book_of(mini_batches_), .seconds = 0.01 + random_.uniform()});
    }
  }

  void run(std::uint64_t rounds) {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) begin(worker);
    while (ended_ < rounds && !testing::Test::HasFatalFailure()) {
      ASSERT_FALSE(events_.empty()) << "everybody waits in round " << ended_ + 1;
      const auto next = events_.begin();
      now_ = next->first;
      const auto event = std::move(next->second);
      events_.erase(next);
      event();
    }
    for (const Worker& worker : workers_) {
      EXPECT_EQ(worker.computed, worker.contributed + worker.booked);
    }
  }

 private:
  struct Worker {
    RoundBook book;
    double seconds;  ///< that a mini-batch takes
    std::uint64_t applied = 0;
    std::uint64_t computed = 0;     ///< mini-batches
    std::uint64_t booked = 0;       ///< of the open round
    std::uint64_t contributed = 0;  ///< of all rounds before
    double contributed_at = 0;
  };

  void after(double seconds, std::function<void()> event) {
    events_.emplace(now_ + seconds, std::move(event));
  }

  void begin(std::size_t worker) {
    const double takes = workers_[worker].seconds * (0.5 + 0.5 * random_.uniform());
    after(takes, [this, worker] { finish(worker); });
  }

  void finish(std::size_t i) {
    Worker& worker = workers_[i];
    ++worker.computed;
    ++worker.booked;
    const std::uint64_t staleness = worker.book.finished_mini_batch();
    ASSERT_EQ(staleness, worker.book.open().value - 1 - worker.applied);
    ASSERT_LE(staleness, overlap_ ? 1 : 0);
    contribute_if_due(i);
    if (overlap_ || !waits(i)) begin(i);
  }

  bool waits(std::size_t i) const {
    return workers_[i].applied + 1 < workers_[i].book.open().value;
  }

  void contribute_if_due(std::size_t i) {
    Worker& worker = workers_[i];
    if (!worker.book.due()) return;
    if (worker.book.signals()) signal(i, worker.book.open());
    const auto contribution = worker.book.contribute();
    ASSERT_EQ(contribution.round.value, ended_ + 1);
    ASSERT_EQ(contribution.mini_batches, worker.booked);
    ASSERT_GE(contribution.mini_batches, 1);
    worker.contributed += std::exchange(worker.booked, 0);
    worker.contributed_at = now_;
    if (++here_ == workers_.size()) end_round();
  }

  void signal(std::size_t from, Round round) {
    for (std::size_t to = 0; to < workers_.size(); ++to) {
      if (to != from) after(latency_, [this, to, round] { workers_[to].book.heard(round); });
    }
  }

  void end_round() {
    here_ = 0;
    ++ended_;
    const auto [first, last] = std::ranges::minmax(workers_, {}, &Worker::contributed_at);
    const double slowest = std::ranges::max(workers_, {}, &Worker::seconds).seconds;
    if (!overlap_) {
      ASSERT_LE(last.contributed_at - first.contributed_at, slowest + latency_ + 1e-9);
    }
    after(meeting_, [this] {
      for (std::size_t i = 0; i < workers_.size(); ++i) apply(i);
    });
  }

  void apply(std::size_t i) {
    ++workers_[i].applied;
    workers_[i].book.applied();
    if (!overlap_) begin(i);
  }

  Random random_;
  bool overlap_;
  std::uint32_t mini_batches_;
  double latency_;
  double meeting_;
  std::vector<Worker> workers_;
  std::multimap<double, std::function<void()>> events_;
  double now_ = 0;
  std::size_t here_ = 0;     ///< who have contributed to the round under way
  std::uint64_t ended_ = 0;  ///< rounds
};

TEST(RoundBook, LosesNothingAndEndsEveryRound) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Schedule(seed).run(20);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace syncopate
