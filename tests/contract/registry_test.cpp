// Goal:   each transport is found by its name, and refused if this process cannot open it.
// Method: the list of transports is compared with a table; nodes 0 and 1 exchange a message over
//         each transport that needs no launcher.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/errors.hpp"
#include "transport/steady_time.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;

TEST(TransportRegistry, ListsTransportsByName) {
  EXPECT_THAT(transport_names, ElementsAre("shm", "tcp", "mpi"));
  std::vector<std::string_view> names;
  for (const TransportSpec& transport : all_transports()) {
    names.push_back(transport.name);
  }
  EXPECT_THAT(names, ElementsAre("shm", "tcp", "mpi"));
}

TEST(TransportRegistry, RefusesUnknownAndUnavailableTransports) {
  EXPECT_THROW(listen_over("carrier-pigeon", {}), ConfigError);
  EXPECT_THROW(join_over("", {}), ConfigError);
  EXPECT_THROW(listen_over("mpi", {}), ConfigError) << "no launcher started this process";
  EXPECT_THROW(join_over("mpi", {}), ConfigError);
}

TEST(TransportRegistry, OpensTransportsThatNeedNoLauncher) {
  const TimePoint deadline = steady_now() + std::chrono::seconds(10);
  for (const std::string_view name : {"shm", "tcp"}) {
    SCOPED_TRACE(name);
    const auto first = listen_over(name, {.token = "t"});
    const auto second = join_over(name, {.token = "t", .coordinator = first->address()});
    EXPECT_EQ(second->self(), NodeId{1});
    EXPECT_EQ(second->shared_memory() != nullptr, name == "shm");
    second->post(coordinator_node, Tag{1}, std::vector<std::byte>(3));
    EXPECT_EQ(first->receive(NodeId{1}, Tag{1}, deadline).payload.size(), 3U);
  }
}

}  // namespace
}  // namespace syncopate
