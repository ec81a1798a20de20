// Goal:   with leased samples, all workers together see each sample exactly once per epoch, a
//         faster worker sees more of them, and a loop may use its share before, during, after and
//         without training.
// Method: programs as threads record the samples of each step; a slow worker waits for the progress
//         of the other one, or for an emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t length = 243;  // samples of the dataset
constexpr std::size_t step_size = 4;
constexpr std::size_t passes = 3;

using Samples = std::vector<std::size_t>;
using Settings = std::map<std::string, std::string>;

Samples all_samples(std::size_t count) {
  Samples all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The samples that each of two workers has seen, by epoch and in the worker's order.
struct Seen {
  explicit Seen(std::size_t epochs) : by_worker(2, std::vector<Samples>(epochs)) {}

  Samples in_epoch(std::size_t epoch) const {
    Samples all = by_worker[0][epoch];
    all.insert(all.end(), by_worker[1][epoch].begin(), by_worker[1][epoch].end());
    std::ranges::sort(all);
    return all;
  }
  std::size_t of_worker(std::uint32_t rank) const {
    return std::accumulate(by_worker[rank].begin(), by_worker[rank].end(), std::size_t{0},
                           [](std::size_t sum, const Samples& more) { return sum + more.size(); });
  }

  std::vector<std::vector<Samples>> by_worker;
};

void expect_each_once(const Seen& seen, std::size_t count = length) {
  for (std::size_t epoch = 0; epoch < seen.by_worker[0].size(); ++epoch) {
    EXPECT_EQ(seen.in_epoch(epoch), all_samples(count)) << "epoch " << epoch;
  }
}

/// Runs one epoch of a share and calls `step` with the samples of each step.
void run_epoch(Share& share, const std::function<void(const Samples& step)>& step) {
  for (Samples next = share.next(); !next.empty(); next = share.next()) {
    step(next);
  }
}

void append(Samples& all, const Samples& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Lets worker 1 take one step for every three steps of worker 0, until worker 0 leaves.
class UnequalSpeeds {
 public:
  void before_step(std::uint32_t rank) {
    std::unique_lock lock(mutex_);
    ++steps_[rank];
    changed_.notify_all();
    if (rank == 1) {
      changed_.wait(lock, [&] { return fast_has_left_ || steps_[0] > 3 * steps_[1]; });
    }
  }
  void leaves(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    fast_has_left_ = fast_has_left_ || rank == 0;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<int, 2> steps_{};
  bool fast_has_left_ = false;
};

/// Trains for a few epochs, and evaluates once after the training.
void train(const InitOptions& options, UnequalSpeeds* speeds, Seen& seen, Seen& evaluated) {
  const std::uint32_t rank = options.entry->rank;
  TorchJob job = init(options);
  Share test = job.share(length / 2, 2 * step_size);
  Share share = job.share(length, 2 * step_size);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.01));
  DistributedOptimizer optimizer(job, net, sgd);
  for (std::size_t epoch = 0; epoch < passes; ++epoch) {
    run_epoch(share, [&](const Samples& step) {
      EXPECT_EQ(share.epoch(), epoch);
      append(seen.by_worker[rank][epoch], step);
      if (speeds != nullptr) {
        speeds->before_step(rank);
      }
      optimizer.zero_grad();
      net.forward(torch::ones({static_cast<std::int64_t>(step.size()), 6})).sum().backward();
      optimizer.step(static_cast<std::int64_t>(step.size()));
    });
  }
  if (speeds != nullptr) {
    speeds->leaves(rank);
  }
  optimizer.finish();
  run_epoch(test, [&](const Samples& step) { append(evaluated.by_worker[rank][0], step); });
}

Seen trained_under(const std::string& scheme, Settings options, UnequalSpeeds* speeds) {
  options["run-dir"] = run_folder();
  Seen seen(passes);
  Seen evaluated(1);
  ThreadedPrograms programs(2);
  const auto errors = programs.run([&](const JobEntry& entry) {
    train({.scheme = scheme, .options = options, .entry = entry}, speeds, seen, evaluated);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(programs.failure(), "");
  expect_each_once(evaluated, length / 2);
  return seen;
}

/// Writes a cluster file of two devices, one with a fifth of the other's speed.
std::string unequal_cluster() {
  const std::string file = testing::TempDir() + "/unequal-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(file) << "[[devices]]\nname = \"fast\"\nsamples_per_second = 1000\n"
                         "[[devices]]\nname = \"slow\"\nsamples_per_second = 200\n";
  return file;
}

TEST(LeasedDataTest, IsSeenOnceAnEpochByWorkersWithoutSteps) {
  UnequalSpeeds speeds;
  const Seen seen = trained_under("asgd", {}, &speeds);
  expect_each_once(seen);
  EXPECT_GT(seen.of_worker(0), 2 * seen.of_worker(1));
}

TEST(LeasedDataTest, IsSeenOnceAnEpochInRoundsOfLocalSteps) {
  const Seen seen = trained_under("esync", {{"cluster", unequal_cluster()}}, nullptr);
  expect_each_once(seen);
  EXPECT_GT(seen.of_worker(0), 2 * seen.of_worker(1));
}

/// Workers of ssgd take the same number of steps, so only their requests determine the leases.
TEST(LeasedDataTest, IsSeenOnceAnEpochInLockstep) {
  expect_each_once(trained_under("ssgd", {{"data-order", "leased"}}, nullptr));
}

TEST(LeasedDataTest, OfAFixedOrderIsTheSamePartWhateverTheSpeeds) {
  UnequalSpeeds speeds;
  const Seen seen = trained_under("asgd", {{"data-order", "fixed"}}, &speeds);
  expect_each_once(seen);
  EXPECT_LE(seen.of_worker(0), seen.of_worker(1) + passes);
}

struct Numbers : torch::data::Dataset<Numbers> {
  torch::data::Example<> get(std::size_t index) override {
    return {torch::tensor(static_cast<std::int64_t>(index)), torch::zeros({1})};
  }
  torch::optional<std::size_t> size() const override { return length; }
};

/// A loader with its own threads requests several steps ahead, even beyond the end of an epoch.
TEST(LeasedDataTest, ComesByALoaderThatReadsAheadWithoutTraining) {
  Seen seen(passes);
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"data-order", "leased"}}, .entry = entry});
    auto loader = job.partition_dataset(Numbers().map(torch::data::transforms::Stack<>()),
                                        2 * step_size, torch::data::DataLoaderOptions().workers(2));
    for (std::size_t epoch = 0; epoch < passes; ++epoch) {
      for (const auto& batch : *loader) {
        for (std::int64_t i = 0; i < batch.data.size(0); ++i) {
          const auto number = static_cast<std::size_t>(batch.data[i].item<std::int64_t>());
          seen.by_worker[entry.rank][epoch].push_back(number);
        }
      }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  expect_each_once(seen);
}

/// Trains for a few epochs under ssgd, whose workers divide each step by their speeds.
void train_by_speed(const JobEntry& entry, const Settings& options, Seen& seen) {
  TorchJob job = init({.options = options, .entry = entry});
  auto loader = job.partition_dataset_by_speed(Numbers().map(torch::data::transforms::Stack<>()),
                                               3 * step_size);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.01));
  DistributedOptimizer optimizer(job, net, sgd);
  for (std::size_t epoch = 0; epoch < passes; ++epoch) {
    for (const auto& batch : *loader) {
      for (std::int64_t i = 0; i < batch.data.size(0); ++i) {
        const auto number = static_cast<std::size_t>(batch.data[i].item<std::int64_t>());
        seen.by_worker[entry.rank][epoch].push_back(number);
      }
      optimizer.zero_grad();
      net.forward(torch::ones({batch.data.size(0), 6})).sum().backward();
      optimizer.step(batch.data.size(0));
    }
  }
}

TEST(LeasedDataTest, IsSeenOnceAnEpochInStepsThatAreDividedBySpeed) {
  Seen seen(passes);
  const Settings options{{"cluster", unequal_cluster()}, {"run-dir", run_folder()}};
  ThreadedPrograms programs(2);
  const auto errors =
      programs.run([&](const JobEntry& entry) { train_by_speed(entry, options, seen); });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(programs.failure(), "");
  expect_each_once(seen);
  EXPECT_GT(seen.by_worker[0].back().size(), 2 * seen.by_worker[1].back().size())
      << "10 and 2 samples of a step";
}

/// A loop that leaves an epoch early skips only samples of its own leases.
TEST(LeasedDataTest, OfAnEpochThatALoopLeavesEarly) {
  Seen seen(2);
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"data-order", "leased"}}, .entry = entry});
    Share share = job.share(length, 2 * step_size);
    if (entry.rank == 0) {
      append(seen.by_worker[0][0], share.next());
      share.next_epoch();
    }
    job.barrier();
    for (std::size_t epoch = share.epoch(); epoch < 2; ++epoch) {
      run_epoch(share,
                [&](const Samples& step) { append(seen.by_worker[entry.rank][epoch], step); });
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(seen.in_epoch(1), all_samples(length));
  EXPECT_EQ(seen.in_epoch(0).size(), length - step_size);  // worker 0 has asked for a second step
}

/// The epoch begins again, since the job does not know which samples an earlier job has leased.
TEST(LeasedDataTest, OfAJobThatGoesOnInTheMiddleOfAnEpoch) {
  Seen seen(2);
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"data-order", "leased"}}, .entry = entry});
    Share share = job.share(length, 2 * step_size);
    share.resume(1, 5000);  // more steps than this job will have
    EXPECT_EQ(share.epoch(), 1U);
    EXPECT_EQ(share.step(), 0U);
    EXPECT_THAT(refusal([&] { share.resume(std::size_t{1} << 32, 0); }),
                HasSubstr("an epoch from 0 to 4294967295, found epoch 4294967296"));
    run_epoch(share, [&](const Samples& step) { append(seen.by_worker[entry.rank][1], step); });
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(seen.in_epoch(1), all_samples(length));
}

/// Saves and loads the sampler of a loader by libtorch's archives.
TEST(LeasedDataTest, ASamplerGoesOnWhereItWasSaved) {
  TorchJob job = init({.options = {{"data-order", "fixed"}}});
  ShareSampler first(job.share(length, step_size));
  first.reset();
  Samples rest;
  for (int step = 0; step < 3; ++step) first.next(step_size);
  torch::serialize::OutputArchive written;
  first.save(written);
  for (auto next = first.next(step_size); next; next = first.next(step_size)) append(rest, *next);

  std::stringstream file;
  written.save_to(file);
  torch::serialize::InputArchive read;
  read.load_from(file);
  ShareSampler second(job.share(length, step_size));
  second.load(read);
  second.reset();
  Samples rest_of_second;
  for (auto next = second.next(step_size); next; next = second.next(step_size)) {
    append(rest_of_second, *next);
  }
  EXPECT_EQ(rest.size(), length - 3 * step_size);
  EXPECT_EQ(rest_of_second, rest);
  second.reset();
  first.reset();
  EXPECT_EQ(second.next(step_size), first.next(step_size));
}

/// Makes a loader of libtorch over `sampler`, with batches of one step of this worker.
auto loader_over(const ShareSampler& sampler) {
  return torch::data::make_data_loader(Numbers().map(torch::data::transforms::Stack<>()), sampler,
                                       torch::data::DataLoaderOptions().batch_size(step_size));
}

std::size_t samples_of_loop(auto& loader) {
  std::size_t samples = 0;
  for (const auto& batch : *loader) samples += static_cast<std::size_t>(batch.data.size(0));
  return samples;
}

TEST(LeasedDataTest, ALoaderGoesOnWhereItsShareDoes) {
  TorchJob job = init({.options = {{"data-order", "fixed"}}});
  Share share = job.share(length, step_size);
  const auto loader = loader_over(ShareSampler(share));
  for (const std::size_t epoch : {0U, 2U, 1U}) {
    share.resume(epoch, 3);
    EXPECT_EQ(samples_of_loop(loader), length - 3 * step_size);
    EXPECT_EQ(share.epoch(), epoch + 1);
    EXPECT_EQ(samples_of_loop(loader), length);
  }
}

/// The loader has a copy of the sampler, whose requests the original does not see.
TEST(LeasedDataTest, ACopyOfTheSamplerIsSavedAtTheEndOfAnEpoch) {
  for (const std::string order : {"fixed", "leased"}) {
    const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
      TorchJob job = init({.options = {{"data-order", order}}, .entry = entry});
      const ShareSampler kept(job.share(length, 2 * step_size));
      const auto loader = loader_over(kept);
      samples_of_loop(loader);
      torch::serialize::OutputArchive written;
      kept.save(written);
      std::stringstream file;
      written.save_to(file);
      torch::serialize::InputArchive read;
      read.load_from(file);
      Share share = job.share(length, 2 * step_size);
      ShareSampler later(share);
      later.load(read);
      EXPECT_EQ(share.epoch(), 1U);
      EXPECT_EQ(share.step(), 0U);
      const auto second = loader_over(later);
      std::vector<std::int64_t> both{static_cast<std::int64_t>(samples_of_loop(second))};
      job.allreduce(both);
      EXPECT_EQ(both.front(), static_cast<std::int64_t>(length));
      EXPECT_EQ(share.epoch(), 2U);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

TEST(LeasedDataTest, ALoaderThatDropsSamplesIsRefused) {
  TorchJob job = init();
  EXPECT_THAT(refusal([&] {
                job.partition_dataset(Numbers(), step_size,
                                      torch::data::DataLoaderOptions().drop_last(true));
              }),
              HasSubstr("partition_dataset takes no drop_last(true)"));
}

TEST(LeasedDataTest, OfProgramsWhoseDatasetsDifferIsRefused) {
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"data-order", "leased"}}, .entry = entry});
    Share share = job.share(entry.rank == 0 ? 16 : 18, 2 * step_size);
    share.next();
  });
  EXPECT_THAT(errors, Contains(HasSubstr("every program of a job partitions the same datasets")));
}

TEST(LeasedDataTest, OfAJobThatTheProgramHasLeftIsRefused) {
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    std::optional<TorchJob> job(std::in_place,
                                InitOptions{.options = {{"data-order", "leased"}}, .entry = entry});
    Share share = job->share(length, 2 * step_size);
    share.next();
    job->barrier();
    job.reset();
    EXPECT_EQ(refusal([&] { share.next(); }),
              "the program has left the job, whose coordinator leases its samples");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace syncopate::test
