// Goal:   a thread pool runs every part of a loop once.
// Method: many short loops in a row on more threads than cores.

#include "kernels/thread_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

TEST(ThreadPool, RunsEveryPartOnce) {
  ThreadPool pool(5);
  for (std::size_t parts = 0; parts < 500; ++parts) {
    std::vector<int> done(parts, 0);
    pool.run(parts, [&](std::size_t part) { ++done[part]; });
    EXPECT_THAT(done, testing::Each(1)) << parts << " parts";
  }
}

}  // namespace
}  // namespace syncopate
