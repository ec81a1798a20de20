// Goal:   a worker takes signals from the workers of its job only.
// Method: two workers in the simulator, and a node outside the job that sends them malformed bytes
//         and a well-formed signal.

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "scheme/nbssgd_rounds.hpp"
#include "sim/simulation.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(RoundSignals, DropsThoseOfNodesThatAreNotInTheJob) {
  sim::Simulation simulation({.seed = 1});
  Round received{};
  const auto worker = [&](World& world, std::uint32_t rank) {
    for (std::uint32_t peer = 0; peer < 3; ++peer) {
      if (NodeId{peer} != world.transport().self()) {
        world.transport().introduce(NodeId{peer}, sim::address_of(NodeId{peer}));
      }
    }
    Group group(world, {.members = {NodeId{0}, NodeId{1}}, .self = Rank{rank}});
    RoundSignals signals(group);
    if (rank == 1) {
      world.sleep_for(2s);
      signals.broadcast(Round{3});
    } else {
      received = signals.wait(world.now() + 10s);
    }
    world.transport().close(world.now() + 1min);
  };
  simulation.add_node("worker", [&](World& world) { worker(world, 0); });
  simulation.add_node("worker", [&](World& world) { worker(world, 1); });
  simulation.add_node("outsider", [](World& world) {
    world.transport().introduce(NodeId{0}, sim::address_of(NodeId{0}));
    std::vector<std::byte> forged(8);
    ByteWriter(forged).put(std::uint64_t{1000});
    world.transport().post(NodeId{0}, tags::round_ends, std::vector<std::byte>(2));
    world.transport().post(NodeId{0}, tags::round_ends, forged);
    world.sleep_for(5s);
    world.transport().close(world.now() + 1min);
  });
  simulation.run();
  EXPECT_EQ(received, Round{3});
}

}  // namespace
}  // namespace syncopate
