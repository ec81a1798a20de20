// Goal:   operations that nobody waits for are carried out in order, and end with the node's error
//         once it has been cancelled, also those that come later.
// Method: a queue in the world of a node that knows no other.
#include "job/program/collective_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

std::string error_of(Pending& pending) {
  try {
    return pending.wait_for(std::chrono::seconds(30)) ? "none" : "it has not ended";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CollectiveQueue, KeepsTheOrder) {
  RealWorld world(listen_over("shm", {.token = "a key of this test alone", .control_only = true}));
  CollectiveQueue queue(world);
  std::vector<int> done;
  for (int i = 0; i < 100; ++i) {
    queue.start([&done, i] { done.push_back(i); });
  }
  queue.run([&] { done.push_back(100); });
  ASSERT_EQ(done.size(), 101U);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(CollectiveQueue, EndsAllByTheErrorOfItsNode) {
  RealWorld world(listen_over("shm", {.token = "a key of this test alone", .control_only = true}));
  CollectiveQueue queue(world);
  EXPECT_EQ(error_of(*queue.start([] {})), "none");
  world.cancel(std::make_exception_ptr(Error("the job has ended")));
  // One that came before its task has noticed may still be carried out.
  for (std::string error = "none"; error == "none"; error = error_of(*queue.start([] {}))) {
  }
  EXPECT_EQ(error_of(*queue.start([] {})), "the job has ended");
}

}  // namespace
}  // namespace syncopate
