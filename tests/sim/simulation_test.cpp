// Goal:   a simulation is a function of its seed, and ends with an error that names the failure.
// Method: the test runs small clusters with a random workload twice and compares their traces byte
//         by byte; it compares the error messages of clusters that fail or wait for ever.

#include "sim/simulation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.hpp"
#include "tests/sim/simulated_cluster.hpp"

namespace syncopate::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// Computes, sends and receives at random, by the seed.
void wander(World& world, std::uint32_t nodes, std::uint64_t seed) {
  const std::uint32_t self = world.transport().self().value;
  Random random = Random(seed).fork("wander", self);
  const auto listener = world.spawn("listener", [&] {
    try {
      for (;;) {
        world.transport().receive(std::nullopt, data, world.now() + milliseconds(5));
      }
    } catch (const Error&) {
      // No message came for a while, or a peer has ended.
    }
  });
  for (int i = 0; i < 20; ++i) {
    world.sleep_for(microseconds(random.below(100)));
    const auto distance = static_cast<std::uint32_t>(1 + random.below(nodes - 1));
    world.transport().post(NodeId{(self + distance) % nodes}, data,
                           std::vector<std::byte>(random.below(3000), std::byte{1}));
  }
  listener->join();
}

std::string trace_of(std::uint64_t body_seed, std::uint64_t network_seed) {
  constexpr std::uint32_t nodes = 6;
  std::string trace;
  Simulation simulation({.seed = network_seed,
                         .network = {.jitter = 0.3},
                         .trace = [&](std::string_view line) { trace.append(line).append("\n"); }});
  populate(simulation, nodes, [body_seed](World& world) { wander(world, nodes, body_seed); });
  simulation.at(TimePoint(microseconds(400)), [&] { simulation.kill(NodeId{2}); });
  simulation.at(TimePoint(microseconds(500)), [&] { simulation.cut_link(NodeId{0}, NodeId{1}); });
  simulation.run();
  return trace;
}

TEST(Simulation, TheSameSeedGivesTheSameTrace) {
  const std::string trace = trace_of(3, 4);
  EXPECT_EQ(trace, trace_of(3, 4));
  EXPECT_GT(std::count(trace.begin(), trace.end(), '\n'), 200);
}

TEST(Simulation, AnotherSeedGivesAnotherTrace) {
  EXPECT_NE(trace_of(3, 4), trace_of(5, 4)) << "of the bodies";
  EXPECT_NE(trace_of(3, 4), trace_of(3, 5)) << "of the network";
}

TEST(Simulation, TheTraceTellsTimeNodePeerTagBytesAndHash) {
  std::vector<std::string> lines;
  Simulation simulation({.network = {.link = {.bandwidth = 1e9, .latency = microseconds(5)}},
                         .trace = [&](std::string_view line) { lines.emplace_back(line); }});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == NodeId{0}) {
      world.transport().post(NodeId{1}, data, std::vector<std::byte>(976));
    } else {
      world.transport().receive(NodeId{0}, data, no_deadline);
    }
  });
  simulation.run();
  const std::string message = "tag=100 bytes=976 hash=" + [] {
    const std::vector<std::byte> payload(976);
    return fmt::format("{:016x}", fingerprint(payload));
  }();
  const std::string loss = "lost peer=0 (lost node 0 (worker), which has closed its connections)";
  EXPECT_THAT(lines, testing::ElementsAre("0.000000000 node=0 start worker",               //
                                          "0.000000000 node=1 start worker",               //
                                          "0.000000000 node=0 send peer=1 " + message,     //
                                          "0.000001000 node=0 end",                        //
                                          "0.000006000 node=1 deliver peer=0 " + message,  //
                                          "0.000006000 node=1 " + loss,                    //
                                          "0.000006000 node=1 end"));
}

TEST(Simulation, FingerprintsDependOnEveryByteAndOnTheLength) {
  std::vector<std::byte> bytes(19);
  const std::uint64_t zeros = fingerprint(bytes);
  EXPECT_NE(zeros, fingerprint(std::span(bytes).first(18)));
  for (std::byte& byte : bytes) {
    byte = std::byte{1};
    EXPECT_NE(zeros, fingerprint(bytes));
    byte = std::byte{0};
  }
  EXPECT_EQ(zeros, fingerprint(bytes));
}

TEST(Simulation, AFailureNamesItsNodeAndKeepsItsCause) {
  Simulation simulation({});
  populate(simulation, 2, [](World& world) {
    if (world.transport().self() == NodeId{0}) {
      world.transport().receive(NodeId{1}, data, no_deadline);
    }
    world.sleep_for(milliseconds(1));
    throw DataError("the disk is full");
  });
  try {
    simulation.run();
    ADD_FAILURE() << "the run succeeded";
  } catch (const NodeFailed& failure) {
    EXPECT_EQ(failure.node(), NodeId{1});
    EXPECT_STREQ(failure.what(), "node 1 (worker) failed: the disk is full");
    EXPECT_THROW(std::rethrow_exception(failure.cause()), DataError);
  }
  ASSERT_EQ(simulation.failures().size(), 2U) << "the other lost its peer";
  EXPECT_THROW(std::rethrow_exception(simulation.failures()[1].cause()), PeerLost);
}

TEST(Simulation, ADeadlockNamesEveryBlockedTaskAndWhatItWaitsFor) {
  Simulation simulation({});
  bool unwound = false;
  populate(simulation, 2, [&unwound](World& world) {
    struct Guard {
      bool& unwound;
      ~Guard() { unwound = true; }
    };
    const Guard guard{unwound};
    if (world.transport().self() == NodeId{0}) {
      world.sleep_for(milliseconds(2));
      world.transport().receive(NodeId{1}, data, no_deadline);
    } else {
      const auto event = world.make_event();
      const auto task = world.spawn("watcher", [&] { event->wait(no_deadline); });
      task->join();
    }
  });
  try {
    simulation.run();
    ADD_FAILURE() << "the run ended";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("node 0 (worker), its body, waits for a message of node 1 under "
                                "tag 100 since 0.002000000 s"),
                      HasSubstr("node 1 (worker), its body, waits for the end of task watcher"),
                      HasSubstr("node 1 (worker), task watcher, waits for an event since 0.0")));
  }
  EXPECT_TRUE(unwound) << "nothing is left on the stacks";
}

TEST(Simulation, ARunThatIsNotOverInTimeIsAnError) {
  Simulation simulation({.until = TimePoint(milliseconds(10))});
  populate(simulation, 1, [](World& world) {
    for (;;) {
      world.sleep_for(milliseconds(3));
    }
  });
  try {
    simulation.run();
    ADD_FAILURE() << "the run ended";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("not over at 0.010000000 s"),
                                    HasSubstr("its body, waits for a sleep to end")));
  }
}

TEST(Simulation, WhatAnActionThrowsEndsTheRun) {
  Simulation simulation({});
  populate(simulation, 1, [](World& world) { world.sleep_until(no_deadline); });
  simulation.at(TimePoint(milliseconds(1)), [] { throw ConfigError("no such fault"); });
  EXPECT_THROW(simulation.run(), ConfigError);
  EXPECT_EQ(simulation.now(), TimePoint(milliseconds(1)));
}

TEST(Simulation, NodesMayBeAddedWhileItRuns) {
  Simulation simulation({});
  TimePoint started;
  simulation.add_node("first", [](World& world) { world.sleep_for(milliseconds(2)); });
  simulation.at(TimePoint(milliseconds(1)),
                [&] { simulation.add_node("late", [&](World& world) { started = world.now(); }); });
  simulation.run();
  EXPECT_EQ(started, TimePoint(milliseconds(1)));
}

TEST(Simulation, HoursPassInNoTime) {
  Simulation simulation({});
  populate(simulation, 3, [](World& world) { world.sleep_for(std::chrono::hours(1000)); });
  simulation.run();
  EXPECT_EQ(simulation.now(), TimePoint(std::chrono::hours(1000)));
}

TEST(Simulation, ThousandNodesAddUpTheirNumbers) {
  // Each node adds its number to the sums of its two children in a binary tree.
  constexpr std::uint32_t nodes = 1024;
  Simulation simulation({});
  std::uint64_t total = 0;
  populate(simulation, nodes, [&total](World& world) {
    const std::uint32_t self = world.transport().self().value;
    std::uint64_t sum = self;
    const auto heartbeat = world.spawn("heartbeat", [&] { world.sleep_for(milliseconds(1)); });
    for (const std::uint32_t child : {2 * self + 1, 2 * self + 2}) {
      std::uint64_t part = 0;
      if (child < nodes) {
        receive_into(world.transport(), NodeId{child}, data,
                     std::as_writable_bytes(std::span(&part, 1)), no_deadline);
      }
      sum += part;
    }
    if (self == 0) {
      total = sum;
    } else {
      send(world.transport(), NodeId{(self - 1) / 2}, data, std::as_bytes(std::span(&sum, 1)),
           no_deadline);
    }
    heartbeat->join();
  });
  simulation.run();
  EXPECT_EQ(total, std::uint64_t{nodes} * (nodes - 1) / 2);
}

}  // namespace
}  // namespace syncopate::sim
