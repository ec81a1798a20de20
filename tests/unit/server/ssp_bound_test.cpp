// Goal:   the table keeps workers within the bound, blocks no worker without need, and never blocks
//         all workers.
// Method: thousands of schedules in virtual time with workers of random speeds, some of which die.
//         The staleness rule is checked against a log of the arriving updates.

#include "server/ssp_bound.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/unit/server/scheduled_workers.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t steps = 12;

/// Workers of random speeds that do `steps` steps each; before each step the table may block them.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed),
        slack_(static_cast<std::uint32_t>(random_.below(5))),
        deaths_(random_.below(2) == 0 ? 0 : 0.02),
        workers_(1 + random_.below(7)),
        table_({.workers = static_cast<std::uint32_t>(workers_.size()), .slack = slack_}) {
    for (Worker& worker : workers_) worker.seconds = 0.01 + 10 * random_.uniform();
  }

  void run() {
    start_those_who_may();
    while (const auto worker = next_to_finish(workers_)) {
      finish(*worker);
      if (random_.uniform() < deaths_) die(random_.below(workers_.size()));
      start_those_who_may();
      expect_bound();
      if (testing::Test::HasFatalFailure()) return;
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].alive) continue;
      EXPECT_EQ(table_.clock(rank(i)), steps) << "worker " << i;
    }
  }

 private:
  struct Worker {
    double seconds = 0;
    bool alive = true;
    std::optional<double> done_at = {};  ///< end of the current step
  };
  static Rank rank(std::size_t worker) { return Rank{static_cast<std::uint32_t>(worker)}; }

  /// Returns true if every update of clock ≤ `clock` − slack − 1 of every live worker has arrived.
  bool all_visible(std::uint64_t clock) const {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      for (std::uint64_t update = 0; update + slack_ + 1 <= clock; ++update) {
        if (workers_[worker].alive && !updates_.contains({worker, update})) return false;
      }
    }
    return true;
  }

  void start_those_who_may() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (!worker.alive || worker.done_at) continue;
      const std::uint64_t clock = table_.clock(rank(i));
      ASSERT_EQ(table_.may_start(rank(i)), all_visible(clock)) << "worker " << i;
      if (clock < steps && table_.may_start(rank(i))) {
        worker.done_at = now_ + worker.seconds * (0.5 + random_.uniform());
      }
    }
  }

  void finish(std::size_t worker) {
    now_ = *workers_[worker].done_at;
    workers_[worker].done_at.reset();
    updates_.insert({worker, table_.clock(rank(worker))});
    table_.finished(rank(worker));
  }

  void die(std::size_t worker) {
    if (!workers_[worker].alive) return;
    workers_[worker].alive = false;
    workers_[worker].done_at.reset();
    table_.remove(rank(worker));
  }

  void expect_bound() const {
    std::vector<std::uint64_t> clocks;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].alive) clocks.push_back(table_.clock(rank(i)));
    }
    if (clocks.empty()) return;
    const auto [least, most] = std::minmax_element(clocks.begin(), clocks.end());
    ASSERT_LE(*most - *least, slack_ + 1);
  }

  Random random_;
  std::uint32_t slack_;
  double deaths_;
  std::vector<Worker> workers_;
  SspTable table_;
  double now_ = 0;
  std::set<std::pair<std::size_t, std::uint64_t>> updates_;  ///< arrived: worker and clock
};

TEST(SspTable, KeepsItsBoundAndBringsAllToTheEnd) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Schedule(seed).run();
    if (HasFailure()) return;
  }
}

TEST(SspTable, NamesWhomAWorkerWaitsFor) {
  SspTable table({.workers = 3, .slack = 1});
  table.finished(Rank{1});
  EXPECT_TRUE(table.may_start(Rank{1}));
  EXPECT_THAT(table.laggards(Rank{1}), IsEmpty());
  table.finished(Rank{1});
  EXPECT_FALSE(table.may_start(Rank{1}));
  EXPECT_THAT(table.laggards(Rank{1}), ElementsAre(Rank{0}, Rank{2}));
  table.finished(Rank{0});
  EXPECT_THAT(table.laggards(Rank{1}), ElementsAre(Rank{2}));
  table.remove(Rank{2});
  EXPECT_TRUE(table.may_start(Rank{1}));
}

TEST(SspTable, IsBulkSynchronousWithoutSlack) {
  SspTable table({.workers = 2, .slack = 0});
  EXPECT_TRUE(table.may_start(Rank{0}));
  table.finished(Rank{0});
  EXPECT_FALSE(table.may_start(Rank{0}));
  table.finished(Rank{1});
  EXPECT_TRUE(table.may_start(Rank{0}));
}

TEST(SspTable, GoesOnWhereAnotherEnded) {
  SspTable table({.workers = 2, .slack = 2});
  table.set_clock(Rank{0}, 7);
  table.set_clock(Rank{1}, 4);
  EXPECT_EQ(table.clock(Rank{0}), 7);
  EXPECT_THAT(table.laggards(Rank{0}), ElementsAre(Rank{1}));
  table.finished(Rank{1});
  EXPECT_TRUE(table.may_start(Rank{0}));
}

TEST(SspTable, AWorkerThatComesBackIsTheFastestOne) {
  SspTable table({.workers = 3, .slack = 1});
  table.remove(Rank{2});
  for (int step = 0; step < 5; ++step) {
    table.finished(Rank{0});
    table.finished(Rank{1});
  }
  table.finished(Rank{0});
  table.restore(Rank{2});
  EXPECT_EQ(table.clock(Rank{2}), 6);
  EXPECT_TRUE(table.may_start(Rank{0}));
  table.finished(Rank{2});
  EXPECT_THAT(table.laggards(Rank{2}), ElementsAre(Rank{1}));
}

TEST(SspTable, KnowsWhoIsThere) {
  SspTable table({.workers = 2, .slack = 0});
  table.remove(Rank{1});
  EXPECT_TRUE(table.present(Rank{0}));
  EXPECT_FALSE(table.present(Rank{1}));
  EXPECT_FALSE(table.present(Rank{2}));
  EXPECT_THROW(table.finished(Rank{1}), InternalError);
  EXPECT_THROW(table.may_start(Rank{2}), InternalError);
}

}  // namespace
}  // namespace syncopate
