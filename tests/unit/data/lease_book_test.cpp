// Goal:   every sample is leased to exactly one worker in each epoch, leases shrink towards the end
//         of an epoch, and all workers end it within a few steps of each other, at all speeds.
// Method: workers with random speeds and step sizes in virtual time request leases during the last
//         two steps of the previous one, as loops do; seeds are printed. Single requests are
//         compared with the formula.
#include "data/lease_book.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t epochs = 3;

struct SimulatedWorker {
  std::uint64_t step_size = 1;
  double sample_seconds = 1;   ///< computing time of a sample
  std::uint64_t asked_in = 0;  ///< epoch of its last request
  Lease lease{};               ///< what is left of the current lease
  Lease next{};
  double clock = 0;             ///< end of its last step
  std::uint64_t trained = 0;    ///< samples since its last request
  double taken = 0;             ///< seconds since its last request
  std::vector<double> last_of;  ///< end of its last step in each epoch

  double step_seconds() const { return static_cast<double>(step_size) * sample_seconds; }
};

struct Granted {
  Lease lease;
  std::uint64_t left = 0;  ///< samples of the epoch that were left before this lease
  std::size_t worker = 0;
};

/// Workers that train for a few epochs. `run` always ends the earliest step next.
class SimulatedJob {
 public:
  explicit SimulatedJob(std::uint64_t seed) : random_(seed) {
    workers_.resize(1 + random_.below(6));
    samples_ = 1 + random_.below(20'000);
    for (SimulatedWorker& worker : workers_) {
      worker.step_size = 1 + random_.below(64);
      worker.sample_seconds = 0.001 * (1 + 20 * random_.uniform());
      worker.last_of.resize(epochs);
    }
    book_.emplace(samples_, static_cast<std::uint32_t>(workers_.size()));
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      ask(rank, {0});
      workers_[rank].lease = workers_[rank].next;
      ask(rank, workers_[rank].lease.epoch);
    }
  }

  void run() {
    while (const auto rank = first_to_step()) {
      step(*rank);
    }
  }

  std::uint64_t samples() const { return samples_; }
  const std::vector<SimulatedWorker>& workers() const { return workers_; }
  const std::vector<Granted>& granted() const { return granted_; }
  const LeaseBook& book() const { return *book_; }

 private:
  std::optional<std::size_t> first_to_step() const {
    std::optional<std::size_t> first;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      const auto end = [&](std::size_t of) {
        return workers_[of].clock + workers_[of].step_seconds();
      };
      const bool trains = workers_[rank].lease.epoch.value < epochs;
      if (trains && (!first || end(rank) < end(*first))) {
        first = rank;
      }
    }
    return first;
  }

  void step(std::size_t rank) {
    SimulatedWorker& worker = workers_[rank];
    const std::uint64_t samples = std::min(worker.step_size, worker.lease.samples());
    worker.clock += static_cast<double>(samples) * worker.sample_seconds;
    worker.taken += static_cast<double>(samples) * worker.sample_seconds;
    worker.trained += samples;
    worker.lease.begin += samples;
    worker.last_of[worker.lease.epoch.value] = worker.clock;
    if (worker.lease.samples() == 0) {
      worker.lease = worker.next;
      worker.next = {};
    }
    const bool asked = worker.next.samples() > 0;
    if (!asked && worker.lease.samples() <= 2 * worker.step_size) {
      ask(rank, worker.lease.epoch);
    }
  }

  void ask(std::size_t rank, Epoch epoch) {
    SimulatedWorker& worker = workers_[rank];
    const Lease lease = book_->next({.worker = Rank{static_cast<std::uint32_t>(rank)},
                                     .epoch = epoch,
                                     .step_size = worker.step_size,
                                     .trained = std::exchange(worker.trained, 0),
                                     .taken = from_seconds(std::exchange(worker.taken, 0.0))});
    granted_.push_back({lease, book_->left(lease.epoch) + lease.samples(), rank});
    worker.next = lease;
  }

  Random random_;
  std::uint64_t samples_ = 0;
  std::vector<SimulatedWorker> workers_;
  std::optional<LeaseBook> book_;
  std::vector<Granted> granted_;
};

/// Runs jobs with many seeds and calls `check` with each.
void for_random_jobs(const std::function<void(const SimulatedJob& job)>& check) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimulatedJob job(seed);
    job.run();
    check(job);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

TEST(LeaseBookTest, LeasesEverySampleOnceAnEpoch) {
  for_random_jobs([](const SimulatedJob& job) {
    std::vector<std::vector<int>> times(epochs, std::vector<int>(job.samples()));
    for (const Granted& granted : job.granted()) {
      for (auto at = granted.lease.begin; at < granted.lease.end; ++at) {
        if (granted.lease.epoch.value < epochs) {
          ++times[granted.lease.epoch.value].at(at);
        }
      }
    }
    EXPECT_EQ(times, std::vector(epochs, std::vector<int>(job.samples(), 1)));
  });
}

TEST(LeaseBookTest, LeasesWholeStepsThatShrinkTowardsTheEndOfAnEpoch) {
  for_random_jobs([](const SimulatedJob& job) {
    for (const Granted& granted : job.granted()) {
      const std::uint64_t step = job.workers()[granted.worker].step_size;
      const std::uint64_t samples = granted.lease.samples();
      const std::uint64_t rest = samples == granted.left ? 1 : 0;  // a single sample is none
      EXPECT_LE(samples, std::max(step, granted.left / 4) + rest);
      EXPECT_TRUE(samples % step == 0 || samples == granted.left);
      EXPECT_NE(granted.left - samples, 1U);
    }
  });
}

/// When a worker gets no more samples of an epoch, another one may have begun a step and hold
/// samples for one or two more. Slower workers get fewer leases that are larger than that.
TEST(LeaseBookTest, EndsAnEpochOnAllWorkersWithinAFewSteps) {
  for_random_jobs([](const SimulatedJob& job) {
    double slowest = 0;
    for (const SimulatedWorker& worker : job.workers()) {
      slowest = std::max(slowest, worker.step_seconds());
    }
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<double> ends;
      for (const SimulatedWorker& worker : job.workers()) {
        if (worker.last_of[epoch] > 0) {
          ends.push_back(worker.last_of[epoch]);
        }
      }
      const auto [first, last] = std::ranges::minmax(ends);
      EXPECT_LE(last - first, 4 * slowest) << "epoch " << epoch;
    }
  });
}

/// Returns a request of a worker that trains `speed` samples per second.
LeaseRequest request_of(std::uint32_t rank, std::uint64_t trained, double speed) {
  return {.worker = Rank{rank},
          .step_size = 10,
          .trained = trained,
          .taken = from_seconds(static_cast<double>(trained) / speed)};
}

TEST(LeaseBookTest, DoublesTheFirstLeases) {
  LeaseBook book(2000, 2);
  for (const std::uint64_t samples : {10, 20, 40, 80}) {
    EXPECT_EQ(book.next(request_of(0, 10, 30)).samples(), samples);
  }
}

TEST(LeaseBookTest, LeasesAQuarterOfWhatAWorkerOfItsSpeedWillTake) {
  LeaseBook book(1'000'000, 2);
  for (int request = 0; request < 20; ++request) {
    book.next(request_of(0, 10, 30));
    book.next(request_of(1, 10, 10));
  }
  const std::uint64_t left = book.left({0});
  EXPECT_EQ(book.next(request_of(0, 10, 30)).samples(), left * 3 / 4 / 4 / 10 * 10);
}

/// As long as the speeds of other workers are unknown, they count as equal to the requester's.
TEST(LeaseBookTest, LeavesTheirPartToWorkersThatHaveNotAsked) {
  LeaseBook book(100'000, 2);
  for (int request = 0; request < 20; ++request) {
    book.next(request_of(0, 10, 30));
  }
  const std::uint64_t left = book.left({0});
  EXPECT_EQ(book.next(request_of(0, 10, 30)).samples(), left / 2 / 4 / 10 * 10);
}

TEST(LeaseBookTest, FollowsASpeedThatChanges) {
  LeaseBook book(100'000'000, 2);
  for (int request = 0; request < 20; ++request) {
    book.next(request_of(0, 10, 10));
    book.next(request_of(1, 10, 10));
  }
  const std::uint64_t before = book.next(request_of(1, 10, 10)).samples();
  for (int request = 0; request < 5; ++request) {
    book.next(request_of(1, 10, 1));
  }
  EXPECT_LT(book.next(request_of(1, 10, 1)).samples(), before / 4);
}

TEST(LeaseBookTest, KnowsWhatAWorkerHasNotTrainedOn) {
  LeaseBook book(100, 2);
  EXPECT_THAT(book.unfinished(Rank{0}), IsEmpty());
  book.next(request_of(0, 0, 1));
  book.next(request_of(1, 0, 1));
  book.next(request_of(0, 4, 1));
  EXPECT_THAT(book.unfinished(Rank{0}),
              ElementsAre(Lease{.begin = 4, .end = 10}, Lease{.begin = 20, .end = 30}));
  EXPECT_THAT(book.unfinished(Rank{1}), ElementsAre(Lease{.begin = 10, .end = 20}));
  book.next({.worker = Rank{0}, .epoch = {1}, .step_size = 10});  // leaves the first epoch
  EXPECT_THAT(book.unfinished(Rank{0}), ElementsAre(Lease{.epoch = {1}, .begin = 0, .end = 10}));
  EXPECT_EQ(book.left({0}), 70U);
}

TEST(LeaseBookTest, RefusesWhatCannotBeLeased) {
  EXPECT_THROW(LeaseBook(0, 1), ConfigError);
  EXPECT_THROW(LeaseBook(1, 0), ConfigError);
  LeaseBook book(10, 1);
  EXPECT_THROW(book.next({.worker = Rank{1}, .step_size = 1}), ProtocolError);
  EXPECT_THROW(book.next({.worker = Rank{0}, .step_size = 0}), ProtocolError);
}

}  // namespace
}  // namespace syncopate
