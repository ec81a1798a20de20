// Goal:   a program that trains for long, or joins one job after the other, needs no more memory in
//         the end than in the beginning.
// Method: 10,000 steps of two programs that are threads, with the heap measured on the way; under
//         AddressSanitizer, whatever nothing points to any more is found at the end.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "job/front/loop_job.hpp"
#include "job/front/loop_training.hpp"
#include "tests/support/plain_replica.hpp"
#include "tests/support/program_coordinator.hpp"

namespace syncopate {
namespace {

constexpr std::size_t step_of_first_measurement = 2000;
constexpr std::size_t steps = 10000;
constexpr std::size_t most_growth = 512 * 1024;  // bytes, of both programs

/// Calls `at(step)` before each step.
void train(const JobEntry& entry, const std::string& scheme, const std::string& folder,
           std::size_t count, const std::function<void(std::size_t step)>& at) {
  const LoopJob job({.scheme = scheme, .options = {{"run-dir", folder}}, .entry = entry});
  auto replica = std::make_unique<test::PlainReplica>();
  test::PlainReplica& own = *replica;
  LoopTraining training(
      job, std::move(replica),
      {.optimizer = {.learning_rate = 0.01, .rule = {{"optimizer", "sgd"}}}, .batch_size = 4});
  for (std::size_t step = 0; step < count; ++step) {
    at(step);
    own.compute_gradient();
    training.step(4);
  }
  training.finish();
}

/// Two programs as threads.
void train_two(const std::string& scheme, std::size_t count,
               const std::function<void(std::uint32_t rank, std::size_t step)>& at) {
  test::ProgramCoordinator coordinator(2);
  const std::string folder = test::new_run_folder();
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      train(
          {.coordinator = coordinator.address(), .key = coordinator.key(), .rank = rank, .size = 2},
          scheme, folder, count, [&](std::size_t step) { at(rank, step); });
    });
  }
  EXPECT_EQ(coordinator.run(), "");
}

/// Bytes in use; 0 under a sanitizer, which has a heap of its own.
std::size_t heap() {
  return ::mallinfo2().uordblks;
}

TEST(LongLoopTest, NeedsNoMoreMemoryInTheEnd) {
  for (const std::string scheme : {"ssgd", "esync", "asgd"}) {
    SCOPED_TRACE(scheme);
    std::size_t before = 0;
    std::size_t after = 0;
    train_two(scheme, steps, [&](std::uint32_t rank, std::size_t step) {
      if (rank == 0 && step == step_of_first_measurement) {
        before = heap();
      } else if (rank == 0 && step == steps - 1) {
        after = heap();
      }
    });
    EXPECT_LT(after, before + most_growth);
  }
}

TEST(LongLoopTest, OneJobAfterTheOther) {
  const auto nothing = [](std::uint32_t /*rank*/, std::size_t /*step*/) {};
  train_two("ssgd", 5, nothing);
  const std::size_t before = heap();
  for (int job = 0; job < 20; ++job) {
    train_two("ssgd", 5, nothing);
  }
  EXPECT_LT(heap(), before + most_growth);
}

}  // namespace
}  // namespace syncopate
