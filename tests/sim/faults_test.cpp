// Goal:   nodes get the same errors from simulated faults as from real ones; a killed node leaves
//         nothing behind.
// Method: nodes are killed and links cut or slowed at chosen virtual times; the test compares the
//         error that each node gets, and its time, which follows from the latency of the links.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/sim/simulated_cluster.hpp"

namespace syncopate::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr NodeId first{0};
constexpr NodeId second{1};
constexpr NetworkProfile network{.link = {.bandwidth = 1e9, .latency = microseconds(5)}};

TimePoint us(std::int64_t count) {
  return TimePoint(microseconds(count));
}

TEST(Faults, PeersLearnOfADeathAfterTheLatency) {
  Simulation simulation({.network = network});
  populate(simulation, 3, [](World& world) {
    if (world.transport().self() == second) {
      world.sleep_until(no_deadline);
    }
    EXPECT_THROW(world.transport().receive(second, data, no_deadline), PeerLost);
    EXPECT_EQ(world.now(), us(105));
  });
  simulation.at(us(100), [&] { simulation.kill(second); });
  simulation.run();
}

TEST(Faults, ADyingNodeDeliversWhatItsCardHadSent) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    Transport& transport = world.transport();
    if (transport.self() == second) {
      transport.post(first, data, std::vector<std::byte>(40'000));
      transport.post(first, data, std::vector<std::byte>(40'000));
      transport.post(first, data, std::vector<std::byte>(40'000));
      world.sleep_until(no_deadline);
    }
    EXPECT_EQ(transport.receive(second, data, no_deadline).payload.size(), 40'000U);
    EXPECT_EQ(transport.receive(second, data, no_deadline).payload.size(), 40'000U);
    EXPECT_THROW(transport.receive(second, data, no_deadline), PeerLost);
    EXPECT_EQ(world.now(), us(105));
  });
  simulation.at(us(100), [&] { simulation.kill(second); });
  simulation.run();
}

TEST(Faults, AKilledNodeUnwindsEveryTaskAtOnceAndCanDoNothing) {
  Simulation simulation({.network = network});
  const auto held = std::make_shared<int>(1);
  std::vector<std::string> swallowed;
  populate(simulation, 2, [held, &swallowed](World& world) {
    Transport& transport = world.transport();
    if (transport.self() == first) {
      EXPECT_THROW(transport.receive(second, data, no_deadline), PeerLost);
      return;
    }
    std::vector<std::byte> large(50'000'000);
    const auto sending = transport.start_send(first, control, large);
    const auto inner = world.spawn("inner", [&world, held] { world.sleep_until(no_deadline); });
    const auto outer = world.spawn("outer", [&, held] {
      const auto nested = world.spawn(
          "nested", [&, held] { world.transport().receive(std::nullopt, control, no_deadline); });
      nested->join();
    });
    try {
      inner->join();
    } catch (...) {
      swallowed.emplace_back("a handler of everything");
      world.transport().post(first, data, {});
    }
    ADD_FAILURE() << "a dead node went on";
  });
  simulation.at(us(100), [&] {
    simulation.kill(second);
    simulation.kill(second);
  });
  simulation.run();
  EXPECT_EQ(simulation.failures().size(), 0U);
  EXPECT_EQ(swallowed.size(), 1U);
  EXPECT_EQ(held.use_count(), 1) << "the tasks of the dead node have let go";
}

TEST(Faults, ANodeMayKillItself) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [&simulation](World& world) {
    if (world.transport().self() == second) {
      simulation.kill(second);
      world.sleep_for(milliseconds(1));
      ADD_FAILURE() << "a dead node went on";
    }
    EXPECT_THROW(world.transport().receive(second, data, no_deadline), PeerLost);
  });
  simulation.run();
}

TEST(Faults, WhoDiedBeforeTheIntroductionIsLost) {
  Simulation simulation({.network = network});
  simulation.add_node("late", [](World& world) {
    world.sleep_for(milliseconds(1));
    meet(world, 3);
    EXPECT_THROW(world.transport().receive(second, data, no_deadline), PeerLost);
    EXPECT_THROW(world.transport().receive(NodeId{2}, data, no_deadline), PeerLost);
  });
  simulation.add_node("short", [](World&) {});
  simulation.run();
}

TEST(Faults, ACutLinkSeparatesItsTwoEndsAlone) {
  Simulation simulation({.network = network});
  populate(simulation, 3, [](World& world) {
    Transport& transport = world.transport();
    const NodeId self = transport.self();
    if (self == NodeId{2}) {
      for (const NodeId peer : {first, second}) {
        transport.receive(peer, control, no_deadline);
      }
      return;
    }
    const NodeId peer = self == first ? second : first;
    EXPECT_THROW(transport.receive(peer, data, no_deadline), PeerLost);
    EXPECT_EQ(world.now(), us(55));
    transport.post(NodeId{2}, control, {});
  });
  simulation.at(us(50), [&] { simulation.cut_link(first, second); });
  simulation.run();
}

TEST(Faults, ASlowedLinkIsSlowFromThenOn) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == first) {
      for (const std::int64_t when : {0, 100}) {
        world.sleep_until(us(when));
        world.transport().post(second, data, std::vector<std::byte>(10'000 - header_bytes));
      }
    } else {
      world.transport().receive(first, data, no_deadline);
      EXPECT_EQ(world.now(), us(15));
      world.transport().receive(first, data, no_deadline);
      EXPECT_EQ(world.now(), us(100 + 1000 + 50));
    }
  });
  simulation.at(us(50), [&] {
    simulation.set_link(first, second, {.bandwidth = 1e7, .latency = microseconds(50)});
  });
  simulation.run();
}

TEST(Faults, ATimedOutSendCutsTheLinkAtItsDeadline) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == first) {
      const std::vector<std::byte> large(1'000'000);
      EXPECT_THROW(send(world.transport(), second, data, large, us(300)), TimedOut);
      EXPECT_EQ(world.now(), us(300));
      EXPECT_THROW(world.transport().receive(second, data, no_deadline), PeerLost);
    } else {
      EXPECT_THROW(world.transport().receive(first, data, no_deadline), PeerLost);
      EXPECT_EQ(world.now(), us(305));
    }
  });
  simulation.run();
}

TEST(Faults, TheDeathOfAReceiverEndsASendUnderWay) {
  Simulation simulation({.network = network});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == first) {
      const std::vector<std::byte> large(1'000'000);
      EXPECT_THROW(send(world.transport(), second, data, large, no_deadline), PeerLost);
      EXPECT_EQ(world.now(), us(105));
    } else {
      world.sleep_until(no_deadline);
    }
  });
  simulation.at(us(100), [&] { simulation.kill(second); });
  simulation.run();
}

}  // namespace
}  // namespace syncopate::sim
