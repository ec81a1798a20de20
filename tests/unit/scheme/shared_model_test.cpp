// Goal:   no concurrent addition to a shared model is lost, and the code has no data race.
// Method: threads add whole numbers to the same values and to one counter per thread; float32
//         represents the sums exactly. The test also runs under ThreadSanitizer. Two views of one
//         memory stand for two processes.

#include "scheme/shared_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr SharedModel::Size size{.params = 301, .buffers = 2, .workers = 4};

std::vector<std::byte> memory() {
  return std::vector<std::byte>(SharedModel::bytes_for(size));
}

TEST(SharedModel, LosesNoAddition) {
  constexpr int additions = 500;
  std::vector<std::byte> bytes = memory();
  SharedModel model(bytes, size);
  model.load(std::vector<float>(size.params, 7), {});
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size.workers; ++rank) {
    threads.emplace_back([&bytes, rank] {
      SharedModel mine(bytes, size);
      const std::vector<float> before(size.params, 1);
      const std::vector<float> after(size.params, 3);
      std::vector<float> seen(size.params);
      for (int i = 0; i < additions; ++i) {
        mine.add_difference(after, before);
        mine.read(seen);
        mine.count(16, 0.5);
        mine.store_buffers(Rank{rank}, std::vector<float>(size.buffers, static_cast<float>(i)), 16);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<float> params(size.params);
  model.read(params);
  EXPECT_THAT(params, Each(7 + 2.0F * additions * size.workers));
  EXPECT_EQ(model.counts().updates, additions * size.workers);
  EXPECT_EQ(model.counts().samples, 16U * additions * size.workers);
  EXPECT_EQ(model.counts().loss_sum, 0.5 * additions * size.workers);
}

TEST(SharedModel, AveragesBuffersByTheSamplesTheyComeFrom) {
  std::vector<std::byte> bytes = memory();
  SharedModel model(bytes, size);
  std::vector<float> mean(size.buffers, 7);
  model.read_mean_buffers(mean);
  EXPECT_THAT(mean, ElementsAre(7, 7)) << "nobody has left any";
  model.store_buffers(Rank{1}, std::vector<float>{1, 10}, 16);
  model.read_mean_buffers(mean);
  EXPECT_THAT(mean, ElementsAre(1, 10));
  for (int step = 0; step < 2; ++step) {
    model.store_buffers(Rank{3}, std::vector<float>{5, 50}, 24);
  }
  model.read_mean_buffers(mean);
  EXPECT_THAT(mean, ElementsAre(4, 40)) << "16 samples of one step beside 48 of two";
}

TEST(SharedModel, KeepsTheInfiniteValuesOfAMask) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<std::byte> bytes = memory();
  SharedModel model(bytes, size);
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    model.store_buffers(Rank{rank}, std::vector<float>{-inf, inf}, 16);
  }
  std::vector<float> mean(size.buffers);
  model.read_mean_buffers(mean);
  EXPECT_THAT(mean, ElementsAre(-inf, inf));
}

TEST(SharedModel, CountsFromWhereARunWasResumed) {
  std::vector<std::byte> bytes = memory();
  SharedModel model(bytes, size);
  model.load(std::vector<float>(size.params), {.updates = 5, .samples = 80, .loss_sum = 0});
  EXPECT_EQ(model.count(16, 0), 5U);
  EXPECT_EQ(model.counts().samples, 96U);
}

TEST(SharedModel, DoesNotFitLessMemoryThanItAskedFor) {
  std::vector<std::byte> bytes(SharedModel::bytes_for(size) - 1);
  EXPECT_THROW(SharedModel(bytes, size), InternalError);
}

}  // namespace
}  // namespace syncopate
