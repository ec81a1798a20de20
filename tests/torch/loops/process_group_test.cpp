// Goal:   programs whose sums a process group of torch computes train as those whose workers reduce
//         by themselves; an error of the group ends the job with its reason.
// Method: programs are threads without shared memory; the process group adds in their common
//         memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <syncopate/torch/process_group.hpp>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

constexpr std::uint32_t workers = 2;

/// A work that has ended.
class Done final : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
};

/// Where the threads add.
class Adder {
 public:
  /// Replaces the values by their sum over both threads.
  void add(torch::Tensor& values) {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t sum = arrived_ / workers;
    torch::Tensor& total = totals_[sum % 2];  // a thread may begin the next sum
    total = arrived_ % workers == 0 ? values.clone() : total + values;
    ++arrived_;
    all_here_.notify_all();
    all_here_.wait(lock, [&] { return arrived_ >= (sum + 1) * workers; });
    values.copy_(total);
  }

  std::uint64_t sums() const { return arrived_ / workers; }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::uint64_t arrived_ = 0;
  std::array<torch::Tensor, 2> totals_;
};

/// A process group of threads.
class ThreadsGroup final : public c10d::ProcessGroup {
 public:
  ThreadsGroup(int rank, Adder& adder) : ProcessGroup(rank, workers), adder_(adder) {}

  const std::string getBackendName() const override { return "threads"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<torch::Tensor>& tensors,
                                           const c10d::AllreduceOptions& /*options*/) override {
    adder_.add(tensors.front());
    return c10::make_intrusive<Done>();
  }

 private:
  Adder& adder_;
};

/// The parameters of the workers, and why they ended.
struct Trained {
  std::vector<std::vector<float>> params{workers};
  std::vector<std::string> errors;
  std::string failure;  ///< of the job
};

/// Trains by ssgd without shared memory; `sums` makes those of a worker.
Trained trained(const std::string& aggregate, const std::function<Training::Sums(int rank)>& sums) {
  const Options options{{"run-dir", run_folder()}, {"transport", "tcp"}, {"aggregate", aggregate}};
  ThreadedPrograms programs(workers);
  Trained all;
  all.errors = programs.run([&](const JobEntry& entry) {
    DistributedOptions of_worker;
    of_worker.sums = sums(static_cast<int>(entry.rank));
    all.params[entry.rank] =
        train_by_loop({"ssgd", options, entry}, batch_size * workers, epochs, of_worker);
  });
  all.failure = programs.failure();
  return all;
}

TEST(ProcessGroupTest, SumsAreThoseOfTheJobsOwnStreams) {
  Adder adder;
  const Trained by_group = trained(
      "torch", [&](int rank) { return sums_of(c10::make_intrusive<ThreadsGroup>(rank, adder)); });
  EXPECT_THAT(by_group.errors, testing::Each(""));
  EXPECT_GT(adder.sums(), 10U);
  EXPECT_EQ(by_group.params, trained("ring", [](int) { return Training::Sums(); }).params);
}

TEST(ProcessGroupTest, AnErrorOfTheGroupEndsTheJob) {
  const Trained failed = trained("torch", [](int) {
    return Training::Sums{[](float*, std::size_t) { throw std::runtime_error("no cable"); },
                          workers};
  });
  EXPECT_THAT(failed.failure, testing::HasSubstr("the program's allreduce failed: no cable"));
}

TEST(ProcessGroupTest, OnOneHostAllWorkersTakePart) {
  ThreadedPrograms programs(workers);
  const auto errors = programs.run([](const JobEntry& entry) {
    const TorchJob job = init({"ssgd", {}, entry});
    EXPECT_THAT(job.ranks_of_sums(), testing::ElementsAre(0, 1));
    EXPECT_THROW(job.host_of(workers), ConfigError);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(ProcessGroupTest, AProgramWithoutAGroupIsRefused) {
  EXPECT_THAT(trained("torch", [](int) { return Training::Sums(); }).errors,
              testing::Contains(testing::HasSubstr(
                  "aggregate torch needs a process group that the program hands to its training")));
}

}  // namespace
}  // namespace syncopate::test
