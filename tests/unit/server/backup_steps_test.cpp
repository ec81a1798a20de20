// Goal:   a step takes the first n gradients that were computed for it and no other; it waits for
//         no further worker and for no dead one. Every gradient is admitted or dropped, and the
//         counts agree.
// Method: thousands of schedules in virtual time with workers of random speeds, some of which die,
//         checked against a log of the arriving gradients.

#include "server/backup_steps.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/unit/server/scheduled_workers.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using Verdict = BackupAdmission::Verdict;

constexpr std::uint64_t steps = 12;

/// Workers of random speeds; each computes for the open step, or waits for the next one.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed),
        deaths_(random_.below(2) == 0 ? 0 : 0.02),
        workers_(1 + random_.below(7)),
        needed_(1 + random_.below(workers_.size())),
        admission_({.workers = static_cast<std::uint32_t>(workers_.size()),
                    .backups = static_cast<std::uint32_t>(workers_.size() - needed_)}) {
    for (Worker& worker : workers_) worker.seconds = 0.01 + 10 * random_.uniform();
  }

  void run() {
    start_those_who_wait();
    while (admission_.step().value < steps && alive() > 0) {
      const auto worker = next_to_finish(workers_);
      ASSERT_TRUE(worker) << "everybody waits at step " << admission_.step().value;
      finish(*worker);
      close_if_due();
      if (random_.uniform() < deaths_) die(random_.below(workers_.size()));
      close_if_due();
      start_those_who_wait();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(admitted_ + admission_.dropped(), brought_);
  }

 private:
  struct Worker {
    double seconds = 0;
    bool alive = true;
    std::uint64_t next_step = 0;  ///< first step without a gradient of this worker
    Step computes_at{0};
    std::optional<double> done_at = {};
  };
  static Rank rank(std::size_t worker) { return Rank{static_cast<std::uint32_t>(worker)}; }

  std::size_t alive() const {
    return static_cast<std::size_t>(std::count_if(
        workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.alive; }));
  }

  void start_those_who_wait() {
    for (Worker& worker : workers_) {
      if (!worker.alive || worker.done_at || worker.next_step > admission_.step().value) continue;
      worker.computes_at = admission_.step();
      worker.done_at = now_ + worker.seconds * (0.5 + random_.uniform());
    }
  }

  void finish(std::size_t i) {
    Worker& worker = workers_[i];
    now_ = *worker.done_at;
    worker.done_at.reset();
    worker.next_step = worker.computes_at.value + 1;
    ++brought_;
    const bool open = worker.computes_at == admission_.step();
    if (open) first_.push_back(rank(i));
    ASSERT_EQ(admission_.arrived(rank(i), worker.computes_at),
              open ? Verdict::admitted : Verdict::dropped);
  }

  /// Closes the step once it has n gradients, or all that can still come.
  void close_if_due() {
    const std::size_t left = alive() + static_cast<std::size_t>(std::count_if(
                                           first_.begin(), first_.end(),
                                           [&](Rank one) { return !workers_[one.value].alive; }));
    const bool due = !first_.empty() && first_.size() >= std::min(needed_, left);
    ASSERT_EQ(admission_.closes(), due);
    if (!due) return;
    std::sort(first_.begin(), first_.end());
    ASSERT_EQ(admission_.admitted(), first_);
    admitted_ += first_.size();
    first_.clear();
    const Step before = admission_.step();
    admission_.close();
    ASSERT_EQ(admission_.step().value, before.value + 1);
    ASSERT_TRUE(admission_.admitted().empty());
  }

  void die(std::size_t worker) {
    if (!workers_[worker].alive) return;
    workers_[worker].alive = false;
    workers_[worker].done_at.reset();
    admission_.remove(rank(worker));
  }

  Random random_;
  double deaths_;
  std::vector<Worker> workers_;
  std::size_t needed_;
  BackupAdmission admission_;
  double now_ = 0;
  std::vector<Rank> first_;  ///< ranks with a gradient of the open step, by arrival
  std::size_t admitted_ = 0;
  std::size_t brought_ = 0;
};

TEST(BackupAdmission, TakesTheFirstOfEachStepAndAlwaysGoesOn) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Schedule(seed).run();
    if (HasFailure()) return;
  }
}

TEST(BackupAdmission, NeverWaitsForTheSlowest) {
  BackupAdmission admission({.workers = 5, .backups = 2});
  for (std::uint64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(admission.arrived(Rank{4}, Step{step}), Verdict::admitted);
    EXPECT_EQ(admission.arrived(Rank{0}, Step{step}), Verdict::admitted);
    EXPECT_FALSE(admission.closes());
    EXPECT_EQ(admission.arrived(Rank{2}, Step{step}), Verdict::admitted);
    ASSERT_TRUE(admission.closes());
    EXPECT_THAT(admission.admitted(), ElementsAre(Rank{0}, Rank{2}, Rank{4}));
    admission.close();
  }
  EXPECT_EQ(admission.arrived(Rank{1}, Step{0}), Verdict::dropped);
  EXPECT_EQ(admission.arrived(Rank{1}, Step{20}), Verdict::admitted);
  EXPECT_EQ(admission.dropped(), 1);
}

TEST(BackupAdmission, DropsWhatComesBetweenTheLastAndTheClose) {
  BackupAdmission admission({.workers = 2, .backups = 1});
  EXPECT_EQ(admission.arrived(Rank{1}, Step{0}), Verdict::admitted);
  EXPECT_EQ(admission.arrived(Rank{0}, Step{0}), Verdict::dropped);
  EXPECT_THAT(admission.admitted(), ElementsAre(Rank{1}));
}

TEST(BackupAdmission, KeepsTheGradientOfOneWhoDiedAndWaitsForAllTheOthers) {
  BackupAdmission admission({.workers = 3, .backups = 0});
  admission.arrived(Rank{2}, Step{0});
  admission.remove(Rank{2});
  admission.arrived(Rank{0}, Step{0});
  EXPECT_FALSE(admission.closes()) << "worker 1 is no backup worker";
  admission.arrived(Rank{1}, Step{0});
  EXPECT_TRUE(admission.closes());
  EXPECT_THAT(admission.admitted(), ElementsAre(Rank{0}, Rank{1}, Rank{2}));
  admission.close();
  EXPECT_EQ(admission.arrived(Rank{2}, Step{1}), Verdict::dropped);
  admission.arrived(Rank{0}, Step{1});
  admission.remove(Rank{1});
  EXPECT_TRUE(admission.closes()) << "a death closes a step that waited for the dead alone";
}

TEST(BackupAdmission, WaitsForAWorkerAgainThatComesBack) {
  BackupAdmission admission({.workers = 2, .backups = 0});
  admission.remove(Rank{1});
  admission.arrived(Rank{0}, Step{0});
  EXPECT_TRUE(admission.closes());
  admission.close();
  admission.restore(Rank{1});
  EXPECT_EQ(admission.arrived(Rank{1}, Step{0}), Verdict::dropped);  // it had not seen the step
  admission.arrived(Rank{0}, Step{1});
  EXPECT_FALSE(admission.closes());
  EXPECT_EQ(admission.arrived(Rank{1}, Step{1}), Verdict::admitted);
  EXPECT_TRUE(admission.closes());
}

TEST(BackupAdmission, GoesOnWhereAnotherEnded) {
  BackupAdmission admission({.workers = 2, .backups = 0});
  admission.set_step(Step{41});
  EXPECT_EQ(admission.arrived(Rank{0}, Step{40}), Verdict::dropped);
  EXPECT_EQ(admission.arrived(Rank{0}, Step{41}), Verdict::admitted);
  EXPECT_EQ(admission.step(), Step{41});
}

template <class Kind, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "none";
}

TEST(BackupAdmission, RefusesWhatMakesNoSense) {
  EXPECT_EQ(message_of<ConfigError>([] { BackupAdmission({.workers = 2, .backups = 2}); }),
            "2 backup workers of 2 workers: expected fewer than workers");
  BackupAdmission admission({.workers = 2, .backups = 0});
  admission.arrived(Rank{0}, Step{0});
  const auto refusal = [&](Rank worker, Step step) {
    return message_of<ProtocolError>([&] { admission.arrived(worker, step); });
  };
  EXPECT_EQ(refusal(Rank{2}, Step{0}), "gradient of worker 2: expected one of 2 workers");
  EXPECT_EQ(refusal(Rank{1}, Step{3}), "gradient of step 3 from worker 1: step 0 is open");
  EXPECT_EQ(refusal(Rank{0}, Step{0}), "second gradient of step 0 from worker 0");
  EXPECT_THROW(admission.close(), InternalError);
  EXPECT_THAT(admission.admitted(), ElementsAre(Rank{0}));
}

}  // namespace
}  // namespace syncopate
