// Goal:   every mini-batch enters one round; every round ends; with the contribution rule a round
//         has about as many mini-batches as all workers compute in the time of a batch, with any
//         jitter. With a barrier no gradient is stale, and a worker waits for at most one
//         mini-batch of the slowest; with overlap no contribution waits for a mini-batch, and all
//         workers are equal after a drained round.
// Method: hand-made entries; then thousands of clusters of random speeds in virtual time, checked
//         against a log of the mini-batches of each round.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "scheme/nbssgd_rounds.hpp"

namespace syncopate {
namespace {

TEST(BatchCut, MakesMiniBatchesOfOneSizeButTheLast) {
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 8}.size()), 8);
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 8}.count()), 8);
  EXPECT_EQ((BatchCut{.batch_size = 10, .mini_batches = 8}.size()), 2);
  EXPECT_EQ((BatchCut{.batch_size = 10, .mini_batches = 8}.count()), 5);
  EXPECT_EQ((BatchCut{.batch_size = 3, .mini_batches = 8}.size()), 1);
  EXPECT_EQ((BatchCut{.batch_size = 3, .mini_batches = 8}.count()), 3);
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 4294967295}.size()), 1);
  EXPECT_EQ((BatchCut{.batch_size = 64, .mini_batches = 4294967295}.count()), 64);
}

RoundTracker tracker_of(std::uint32_t mini_batches, Round done = {},
                        SignalRule rule = SignalRule::contribution) {
  return RoundTracker({.batch_size = mini_batches, .mini_batches = mini_batches}, done, rule);
}

using Staleness = std::vector<std::uint64_t>;

TEST(RoundTracker, IsDueWhenABatchIsBooked) {
  for (const SignalRule rule : {SignalRule::contribution, SignalRule::batch}) {
    RoundTracker tracker = tracker_of(3, Round{6}, rule);
    for (int mini_batch = 0; mini_batch < 3; ++mini_batch) {
      EXPECT_FALSE(tracker.due());
      tracker.finished_mini_batch(Round{6});
    }
    EXPECT_TRUE(tracker.due());
    EXPECT_TRUE(tracker.must_signal());
    const auto contribution = tracker.contribute();
    EXPECT_EQ(contribution.round.value, 7);
    EXPECT_EQ(contribution.staleness, Staleness(3, 0));
    EXPECT_FALSE(tracker.due());
  }
}

TEST(RoundTracker, IsDueAtOnceWhenOthersSignal) {
  RoundTracker tracker = tracker_of(3);
  tracker.finished_mini_batch(Round{});
  EXPECT_FALSE(tracker.due());
  tracker.on_signal(Round{1});
  EXPECT_TRUE(tracker.due());
  EXPECT_FALSE(tracker.must_signal()) << "they know";
  EXPECT_EQ(tracker.contribute().staleness, Staleness(1, 0));
}

TEST(RoundTracker, ContributesNothingWhereNothingIsFinished) {
  RoundTracker tracker = tracker_of(3);
  tracker.on_signal(Round{1});
  EXPECT_TRUE(tracker.due());
  EXPECT_EQ(tracker.contribute().staleness, Staleness{});
  tracker.reduced();
  tracker.on_signal(Round{2});
  tracker.contribute();
  tracker.reduced();
  tracker.finished_mini_batch(Round{});
  tracker.on_signal(Round{3});
  EXPECT_EQ(tracker.contribute().staleness, Staleness{2}) << "two rounds have passed meanwhile";
}

/// Returns a tracker after a round that another worker ended when one mini-batch was pending.
RoundTracker interrupted_book(SignalRule rule) {
  RoundTracker tracker = tracker_of(3, {}, rule);
  tracker.finished_mini_batch(Round{});
  tracker.on_signal(Round{1});
  tracker.contribute();
  tracker.reduced();
  tracker.finished_mini_batch(Round{1});
  tracker.finished_mini_batch(Round{1});
  return tracker;
}

TEST(RoundTracker, CountsFromTheLastContributionByTheContributionRule) {
  RoundTracker tracker = interrupted_book(SignalRule::contribution);
  EXPECT_FALSE(tracker.due()) << "two mini-batches since the last contribution";
  tracker.finished_mini_batch(Round{1});
  EXPECT_TRUE(tracker.due());
  EXPECT_EQ(tracker.contribute().staleness, Staleness(3, 0));
}

TEST(RoundTracker, GoesOnWithTheRestOfItsBatchByTheBatchRule) {
  RoundTracker tracker = interrupted_book(SignalRule::batch);
  EXPECT_TRUE(tracker.due()) << "the batch of three ends";
  EXPECT_EQ(tracker.contribute().staleness, Staleness(2, 0));
}

TEST(RoundTracker, IsNotDueBeforeTheAllreduceIsComplete) {
  RoundTracker tracker = tracker_of(1);
  tracker.finished_mini_batch(Round{});
  tracker.contribute();
  tracker.finished_mini_batch(Round{});
  EXPECT_FALSE(tracker.due()) << "a batch is pending, but the last allreduce is under way";
  EXPECT_THROW(tracker.contribute(), InternalError);
  tracker.reduced();
  EXPECT_TRUE(tracker.due());
  EXPECT_EQ(tracker.contribute().staleness, Staleness{1});
}

TEST(RoundTracker, HandsInWhatItHasWhenTrainingEnds) {
  RoundTracker tracker = tracker_of(8);
  tracker.finished_mini_batch(Round{});
  EXPECT_FALSE(tracker.due());
  tracker.force_due();
  EXPECT_TRUE(tracker.due());
}

/// A worker between two mini-batches.
struct Drained {
  explicit Drained(bool every_round) : drain(tracker, every_round) {}

  void compute() { tracker.finished_mini_batch(Round{}); }
  /// Contributes to the open round, which another worker has ended. Returns true if it is ready.
  bool contribute() {
    tracker.on_signal(tracker.open());
    const bool ready = drain.contributes();
    tracker.contribute();
    return ready;
  }

  RoundTracker tracker = tracker_of(8);
  RoundDrain drain;
};

TEST(RoundDrain, DrainsEveryRoundOfABarrier) {
  Drained worker(/*every_round=*/true);
  worker.compute();
  EXPECT_FALSE(worker.drain.pauses());
  worker.tracker.on_signal(Round{1});
  EXPECT_FALSE(worker.drain.may_contribute()) << "it computes";
  EXPECT_TRUE(worker.drain.pauses());
  EXPECT_TRUE(worker.drain.may_contribute());
  EXPECT_TRUE(worker.contribute());
  EXPECT_TRUE(worker.drain.reduced({.checkpoint = true, .all_ready = true})) << "at once";
  EXPECT_FALSE(worker.drain.paused());
  worker.compute();
  worker.contribute();
  EXPECT_FALSE(worker.drain.reduced({.all_ready = true}));
}

/// A fast worker's signal can come before this worker begins its mini-batch.
TEST(RoundDrain, OfABarrierWaitsForAMiniBatchOfEachWorker) {
  Drained worker(/*every_round=*/true);
  worker.tracker.on_signal(Round{1});
  EXPECT_FALSE(worker.drain.pauses());
  EXPECT_FALSE(worker.drain.may_contribute());
  worker.compute();
  EXPECT_TRUE(worker.drain.pauses());
  EXPECT_TRUE(worker.contribute());
}

TEST(RoundDrain, DrainsTheRoundAfterARequest) {
  Drained worker(/*every_round=*/false);
  worker.compute();
  EXPECT_TRUE(worker.contribute());
  EXPECT_FALSE(worker.drain.reduced({.checkpoint = true, .all_ready = true}));
  EXPECT_TRUE(worker.drain.drains());
  worker.compute();
  EXPECT_FALSE(worker.drain.pauses());
  worker.tracker.on_signal(Round{2});
  EXPECT_FALSE(worker.drain.may_contribute()) << "it computes";
  worker.compute();
  EXPECT_TRUE(worker.drain.pauses());
  EXPECT_TRUE(worker.drain.may_contribute());
  worker.contribute();
  EXPECT_TRUE(worker.drain.reduced({.all_ready = true}));
  EXPECT_FALSE(worker.drain.drains());
  EXPECT_FALSE(worker.drain.paused());
}

TEST(RoundDrain, PausesAWorkerWhoseMiniBatchSpansRoundsBeforeTheDrainedOne) {
  Drained worker(/*every_round=*/false);
  EXPECT_FALSE(worker.contribute());
  EXPECT_FALSE(worker.drain.reduced({.checkpoint = true}));
  EXPECT_FALSE(worker.drain.drains()) << "the others would wait for its mini-batch";
  worker.compute();
  EXPECT_FALSE(worker.tracker.due());
  EXPECT_TRUE(worker.drain.pauses());
  EXPECT_TRUE(worker.tracker.due()) << "it ends the round";
  EXPECT_TRUE(worker.contribute()) << "paused, and so ready";
  EXPECT_FALSE(worker.drain.reduced({.all_ready = true}));
  EXPECT_TRUE(worker.drain.drains());
  EXPECT_TRUE(worker.drain.pauses()) << "it stays where it is";
  EXPECT_TRUE(worker.drain.may_contribute());
  EXPECT_TRUE(worker.contribute());
  EXPECT_TRUE(worker.drain.reduced({.all_ready = true}));
  EXPECT_FALSE(worker.drain.paused());
}

TEST(RoundDrain, DrainsTheLastRound) {
  Drained worker(/*every_round=*/false);
  worker.compute();
  worker.contribute();
  EXPECT_FALSE(worker.drain.reduced({.next_is_last = true}));
  EXPECT_TRUE(worker.drain.drains());
  worker.compute();
  EXPECT_FALSE(worker.drain.pauses()) << "it fills the round";
  worker.tracker.on_signal(Round{2});
  worker.compute();
  EXPECT_TRUE(worker.drain.pauses());
}

TEST(RoundDrain, EndsEachRoundWhereTheWorkerComputesNoMore) {
  Drained worker(/*every_round=*/false);
  worker.compute();
  worker.drain.stop();
  EXPECT_TRUE(worker.drain.pauses());
  EXPECT_TRUE(worker.drain.may_contribute());
  worker.contribute();
  worker.drain.reduced({.all_ready = true, .next_is_last = true});
  EXPECT_TRUE(worker.drain.paused());
  EXPECT_TRUE(worker.drain.may_contribute());
}

/// Workers of random speeds, which compute mini-batches, signal, and contribute as their trackers
/// say. A round's allreduce begins once all have contributed, and takes `allreduce` seconds; a
/// worker applies its result between two mini-batches.
class Cluster {
 public:
  struct Options {
    SignalRule rule = SignalRule::contribution;
    bool barrier = false;
    std::uint32_t mini_batches = 8;
    double latency = 0;
    double allreduce = 0;
    double jitter = 0.5;               ///< a mini-batch may take less time, by up to this share
    double checkpoints = 0;            ///< share of mini-batches that a request follows
    std::vector<double> seconds = {};  ///< time of a mini-batch, by worker
  };

  Cluster(std::uint64_t seed, const Options& options) : random_(seed), options_(options) {
    for (const double seconds : options.seconds) {
      workers_.emplace_back(options, seconds);
    }
  }

  static Options random_options(std::uint64_t seed) {
    Random random(seed);
    Options options{
        .rule = random.below(2) == 0 ? SignalRule::contribution : SignalRule::batch,
        .barrier = random.below(3) == 0,
        .mini_batches = static_cast<std::uint32_t>(1 + random.below(9)),
        .latency = 0.01 * random.uniform(),
        .allreduce = 0.2 * random.uniform(),
        .checkpoints = random.below(2) == 0 ? 0.0 : 0.05,
    };
    for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
      const double slower = random.below(4) == 0 ? 30 : 1;
      options.seconds.push_back(slower * (0.01 + random.uniform()));
    }
    return options;
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
      EXPECT_EQ(worker.computed, worker.contributed + worker.tracker.pending());
    }
  }

  /// Returns the mean size of a round, relative to the contributions of all workers in the time of
  /// a batch of the fastest.
  double mean_round() const {
    std::uint64_t contributed = 0;
    double full = 0;
    const double fastest = std::ranges::min_element(workers_, {}, &Worker::seconds)->seconds;
    for (const Worker& worker : workers_) {
      contributed += worker.contributed;
      full += options_.mini_batches * fastest / worker.seconds;
    }
    return static_cast<double>(contributed) / static_cast<double>(ended_) / full;
  }

  std::uint64_t checkpoints() const { return checkpoints_; }

 private:
  struct Worker {
    Worker(const Options& options, double mini_batch)
        : tracker(tracker_of(options.mini_batches, {}, options.rule)),
          drain(tracker, options.barrier),
          seconds(mini_batch) {}

    RoundTracker tracker;
    RoundDrain drain;
    double seconds;  ///< time of a mini-batch
    bool computing = false;
    bool ready = false;
    std::uint64_t read = 0;         ///< round of the model for its mini-batch
    std::uint64_t results = 0;      ///< rounds whose result the worker has
    std::uint64_t computed = 0;     ///< mini-batches that the worker computed
    std::uint64_t contributed = 0;  ///< mini-batches that the worker contributed
    double paused_at = 0;
    bool wanted = false;  ///< a checkpoint is requested
  };

  void after(double seconds, std::function<void()> event) {
    events_.emplace(now_ + seconds, std::move(event));
  }

  void begin(std::size_t i) {
    workers_[i].computing = true;
    workers_[i].read = workers_[i].results;
    const double takes =
        workers_[i].seconds * (1 - options_.jitter + options_.jitter * random_.uniform());
    after(takes, [this, i] { finish(i); });
  }

  void finish(std::size_t i) {
    Worker& worker = workers_[i];
    worker.computing = false;
    ++worker.computed;
    worker.wanted |= options_.checkpoints > 0 && random_.uniform() < options_.checkpoints;
    worker.tracker.finished_mini_batch(Round{worker.read});
    compute_on(i);
  }

  void compute_on(std::size_t i) {
    Worker& worker = workers_[i];
    worker.paused_at = now_;
    if (!worker.drain.pauses()) begin(i);
    contribute_if_due(i);
  }

  void contribute_if_due(std::size_t i) {
    Worker& worker = workers_[i];
    if (!worker.drain.may_contribute()) return;
    if (worker.tracker.must_signal()) signal(i, worker.tracker.open());
    const std::uint64_t mini_batches = worker.tracker.pending();
    worker.ready = worker.drain.contributes();
    requested_in_round_ |= std::exchange(worker.wanted, false);
    const auto contribution = worker.tracker.contribute();
    ASSERT_EQ(contribution.round.value, ended_ + 1);
    ASSERT_EQ(contribution.staleness.size(), mini_batches);
    for (const std::uint64_t staleness : contribution.staleness) {
      ASSERT_LE(staleness, options_.barrier ? 0 : ended_);
    }
    worker.contributed += mini_batches;
    first_at_ = here_ == 0 ? now_ : first_at_;
    if (++here_ == workers_.size()) end_round();
  }

  void signal(std::size_t from, Round round) {
    for (std::size_t to = 0; to < workers_.size(); ++to) {
      if (to == from) continue;
      after(options_.latency, [this, to, round] {
        workers_[to].tracker.on_signal(round);
        contribute_if_due(to);
      });
    }
  }

  /// Checks that no contribution waited for a mini-batch, except in a drained round: that one waits
  /// for one mini-batch of each worker that had not paused before.
  void end_round() {
    here_ = 0;
    ++ended_;
    double slowest = 0;
    for (const Worker& worker : workers_) {
      const bool computed = worker.paused_at > drained_since_ || options_.barrier;
      slowest = std::max(slowest, workers_[0].drain.drains() && computed ? worker.seconds : 0);
    }
    ASSERT_LE(now_ - first_at_, slowest + options_.latency + 1e-9);
    after(options_.allreduce, [this] { apply(); });
  }

  void apply() {
    const bool all_ready = std::ranges::all_of(workers_, &Worker::ready);
    const bool drained = workers_[0].drain.drains();
    const bool requested = std::exchange(requested_in_round_, false);
    std::vector<bool> was_paused;
    std::vector<bool> saves;
    for (Worker& worker : workers_) {
      was_paused.push_back(worker.drain.paused());
      ++worker.results;
      saves.push_back(worker.drain.reduced({.checkpoint = requested, .all_ready = all_ready}));
      ASSERT_EQ(saves.back(), saves.front());
      ASSERT_EQ(worker.drain.drains(), workers_[0].drain.drains()) << "all come to the same round";
      if (drained) {
        ASSERT_EQ(worker.tracker.pending(), 0);
        ASSERT_FALSE(worker.computing);
      }
    }
    checkpoints_ += saves.front() ? 1 : 0;
    drained_since_ = now_;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (drained) {
        begin(i);
      } else if (was_paused[i]) {
        ASSERT_TRUE(workers_[i].drain.paused());
      }
      contribute_if_due(i);
    }
  }

  Random random_;
  Options options_;
  std::deque<Worker> workers_;
  std::multimap<double, std::function<void()>> events_;
  double now_ = 0;
  double first_at_ = 0;       ///< time of the first contribution to the current round
  double drained_since_ = 0;  ///< end of the last round
  std::size_t here_ = 0;      ///< workers that have contributed to the current round
  std::uint64_t ended_ = 0;   ///< rounds that have ended
  bool requested_in_round_ = false;
  std::uint64_t checkpoints_ = 0;
};

TEST(RoundTracker, LosesNothingAndEndsEveryRound) {
  std::uint64_t checkpoints = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(seed, Cluster::random_options(seed));
    cluster.run(30);
    checkpoints += cluster.checkpoints();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(checkpoints, 3000);
}

TEST(RoundTracker, KeepsRoundsWholeUnderJitterByTheContributionRule) {
  for (const bool barrier : {false, true}) {
    const Cluster::Options options{
        .barrier = barrier, .jitter = 0.1, .seconds = {0.9, 1.0, 1.0, 1.1}};
    Cluster by_contribution(1, options);
    by_contribution.run(500);
    EXPECT_GE(by_contribution.mean_round(), 0.85) << (barrier ? "barrier" : "overlap");
    Cluster::Options literal = options;
    literal.rule = SignalRule::batch;
    Cluster by_batch(1, literal);
    by_batch.run(500);
    EXPECT_LE(by_batch.mean_round(), 0.7) << (barrier ? "barrier" : "overlap");
  }
}

}  // namespace
}  // namespace syncopate
