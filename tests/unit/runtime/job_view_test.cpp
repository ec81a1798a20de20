// Goal:   a view arrives with all fields, and knows which of its members share a host.
// Method: a round trip through its message; views of members on known and unknown machines.

#include "runtime/job_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::ElementsAre;

Member worker(std::uint32_t rank, const std::string& machine) {
  return {.node = NodeId{rank + 1},
          .role = Role::worker,
          .rank = Rank{rank},
          .host = "c3",
          .pid = 4711,
          .address = "c3:9091",
          .device = "cpu",
          .machine = machine};
}

TEST(View, TravelsWhole) {
  const View view{.number = 7, .members = {worker(0, "boot/1/2")}};
  const View copy = from_wire(to_wire(view));
  EXPECT_EQ(copy.number, 7U);
  ASSERT_EQ(copy.members.size(), 1U);
  const Member& member = copy.members[0];
  EXPECT_EQ(member.to_string(), "worker 0 (pid 4711 on c3)");
  EXPECT_EQ(member.node, NodeId{1});
  EXPECT_EQ(member.address, "c3:9091");
  EXPECT_EQ(member.device, "cpu");
  EXPECT_EQ(member.machine, "boot/1/2");
}

TEST(View, NumbersHostsInTheOrderInWhichTheyOccur) {
  View view{
      .number = 1,
      .members = {worker(0, "b"), worker(1, "a"), worker(2, ""), worker(3, "b"), worker(4, "")}};
  view.members.push_back(worker(0, "a"));
  view.members.back().role = Role::server;
  EXPECT_THAT(view.hosts(Role::worker), ElementsAre(0, 1, 2, 0, 3));
  EXPECT_THAT(view.hosts(Role::server), ElementsAre(0));
}

}  // namespace
}  // namespace syncopate
