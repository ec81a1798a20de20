// Goal:   sends and receives take the transfer times of the network in the nodes' virtual time.
// Method: nodes exchange messages over links of 1 byte per nanosecond and 5 microseconds of
//         latency; the times of sends and receives are compared with closed formulas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/simulated_cluster.hpp"

namespace syncopate::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr NetworkProfile network{.link = {.bandwidth = 1e9, .latency = microseconds(5)}};
constexpr std::size_t size = 10'000;
/// Time for which a message occupies a network card or a link.
constexpr nanoseconds passing{size + header_bytes};

TEST(SimulatedNetwork, ASendEndsWhenTheCardIsDoneAndArrivesAfterTheLatency) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    std::vector<std::byte> bytes(size);
    if (world.transport().self() == NodeId{0}) {
      send(world.transport(), NodeId{1}, data, bytes, no_deadline);
      EXPECT_EQ(since_start(world), passing);
    } else {
      receive_into(world.transport(), NodeId{0}, data, bytes, no_deadline);
      EXPECT_EQ(since_start(world), microseconds(5) + passing);
    }
  });
  simulation.run();
}

TEST(SimulatedNetwork, ARoundTripTakesTwiceTheTime) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    const NodeId peer{1 - world.transport().self().value};
    if (peer == NodeId{1}) {
      world.transport().post(peer, data, std::vector<std::byte>(size));
      world.transport().receive(peer, data, no_deadline);
      EXPECT_EQ(since_start(world), 2 * (microseconds(5) + passing));
    } else {
      world.transport().post(peer, data,
                             world.transport().receive(peer, data, no_deadline).payload);
    }
  });
  simulation.run();
}

TEST(SimulatedNetwork, MessagesOfManyToOneAreSerialisedAtItsCard) {
  constexpr std::uint32_t nodes = 9;
  Simulation simulation({.network = network});
  populate(simulation, nodes, [](World& world) {
    if (world.transport().self() != NodeId{0}) {
      world.transport().post(NodeId{0}, data, std::vector<std::byte>(size));
      return;
    }
    for (std::uint32_t count = 1; count < nodes; ++count) {
      world.transport().receive(NodeId{count}, data, no_deadline);
      EXPECT_EQ(since_start(world), microseconds(5) + count * passing);
    }
  });
  simulation.run();
}

TEST(SimulatedNetwork, MessagesOfOneToManyAreSerialisedAtItsCard) {
  constexpr std::uint32_t nodes = 9;
  Simulation simulation({.network = network});
  populate(simulation, nodes, [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    if (self == 0) {
      for (std::uint32_t peer = 1; peer < nodes; ++peer) {
        world.transport().post(NodeId{peer}, data, std::vector<std::byte>(size));
      }
      return;
    }
    world.transport().receive(NodeId{0}, data, no_deadline);
    EXPECT_EQ(since_start(world), microseconds(5) + self * passing);
  });
  simulation.run();
}

TEST(SimulatedNetwork, ARingOfAllNodesRunsAtFullSpeedEverywhere) {
  constexpr std::uint32_t nodes = 8;
  Simulation simulation({.network = network});
  populate(simulation, nodes, [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    std::vector<std::byte> bytes(size);
    for (std::uint32_t step = 1; step < nodes; ++step) {
      std::vector<std::byte> next(size);
      const auto sending = world.transport().start_send(NodeId{(self + 1) % nodes}, data, bytes);
      receive_into(world.transport(), NodeId{(self + nodes - 1) % nodes}, data, next, no_deadline);
      sending->wait(no_deadline);
      EXPECT_EQ(since_start(world), step * (microseconds(5) + passing));
      bytes = std::move(next);
    }
  });
  simulation.run();
}

TEST(SimulatedNetwork, CloseWaitsForTheCard) {
  Simulation simulation({.network = network});
  simulation.add_node("closes", [](World& world) {
    meet(world, 2);
    world.transport().post(NodeId{1}, data, std::vector<std::byte>(size));
    world.transport().close(no_deadline);
    EXPECT_EQ(since_start(world), passing);
  });
  simulation.add_node("receives", [](World& world) {
    meet(world, 2);
    EXPECT_EQ(world.transport().receive(NodeId{0}, data, no_deadline).payload.size(), size);
    EXPECT_THROW(world.transport().receive(NodeId{0}, data, no_deadline), PeerLost);
  });
  simulation.run();
}

TEST(SimulatedNetwork, WhoEndsWithoutClosingLosesWhatWasNotSent) {
  Simulation simulation({.network = network});
  simulation.add_node("forgetful", [](World& world) {
    meet(world, 2);
    world.transport().post(NodeId{1}, data, std::vector<std::byte>(size));
  });
  simulation.add_node("receives", [](World& world) {
    meet(world, 2);
    EXPECT_THROW(world.transport().receive(NodeId{0}, data, no_deadline), PeerLost);
    EXPECT_EQ(since_start(world), microseconds(5));
  });
  simulation.run();
}

TEST(SimulatedNetwork, AChangedLoanIsFound) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == NodeId{1}) {
      world.transport().receive(NodeId{0}, data, no_deadline);
      return;
    }
    std::vector<std::byte> borrowed(size);
    const auto sending = world.transport().start_send(NodeId{1}, data, borrowed);
    borrowed[5] = std::byte{1};
    EXPECT_THROW(sending->wait(no_deadline), InternalError);
  });
  simulation.run();
}

}  // namespace
}  // namespace syncopate::sim
