// Goal:   messages keep the promised order when several tasks of several nodes exchange messages at
//         the same time, with every kind of send and receive.
// Method: a seed draws, for each pair of nodes and each lane (a tag), a script of message sizes
//         that both ends know. For each lane one task sends to all peers in a random order, and
//         another one receives in a random order; each message is compared with the script.

#include <algorithm>

#include "base/random.hpp"
#include "tests/contract/contract_cluster.hpp"
#include "tests/contract/payload.hpp"
#include "transport/tags.hpp"

namespace syncopate::contract {
namespace {

constexpr std::uint32_t nodes = 4;
constexpr std::uint32_t lanes = 3;
constexpr std::size_t messages = 60;  // for each pair of nodes and each lane

/// Returns a number that identifies the messages from one node to another in one lane.
std::uint64_t conversation(NodeId from, NodeId to, std::uint32_t lane) {
  return (std::uint64_t{from.value} * nodes + to.value) * lanes + lane;
}

/// Draws a size: mostly small, sometimes 0, sometimes larger than any buffer on the way.
std::size_t draw_size(Random& random) {
  switch (random.below(10)) {
    case 0: return 0;
    case 1: return 200'000 + random.below(800'000);
    case 2:
    case 3: return random.below(100'000);
    default: return random.below(500);
  }
}

/// The sizes of the messages of one conversation.
std::vector<std::size_t> script(std::uint64_t seed, std::uint64_t conversation) {
  Random random = Random(seed).fork("script", conversation);
  std::vector<std::size_t> sizes(messages);
  std::generate(sizes.begin(), sizes.end(), [&] { return draw_size(random); });
  return sizes;
}

/// Each peer of `self`, `messages` times, in a random order.
std::vector<NodeId> draw_order(NodeId self, Random& random) {
  std::vector<NodeId> order;
  for (std::uint32_t peer = 0; peer < nodes; ++peer) {
    if (NodeId{peer} != self) {
      order.insert(order.end(), messages, NodeId{peer});
    }
  }
  random.shuffle(std::span(order));
  return order;
}

/// One lane of one node.
struct Lane {
  World& world;
  std::uint64_t seed;
  std::uint32_t lane;
  NodeId self = world.transport().self();
  Tag tag = tags::of_generation(tags::allgather, lane);
};

void send_all(const Lane& lane) {
  Random random = Random(lane.seed).fork("sender", lane.self.value * lanes + lane.lane);
  std::vector<std::size_t> next(nodes, 0);
  for (const NodeId to : draw_order(lane.self, random)) {
    const std::uint64_t talk = conversation(lane.self, to, lane.lane);
    const std::size_t number = next.at(to.value)++;
    const std::size_t size = script(lane.seed, talk).at(number);
    Bytes payload = pattern(size, talk * messages + number);
    if (random.below(2) == 0) {
      lane.world.transport().post(to, lane.tag, std::move(payload));
    } else {
      send(lane.world.transport(), to, lane.tag, payload, soon(lane.world));
    }
  }
}

Bytes receive_next(const Lane& lane, NodeId from, std::size_t size, bool into_buffer) {
  if (!into_buffer) {
    return lane.world.transport().receive(from, lane.tag, soon(lane.world)).payload;
  }
  Bytes into(size);
  receive_into(lane.world.transport(), from, lane.tag, into, soon(lane.world));
  return into;
}

void receive_all(const Lane& lane) {
  Random random = Random(lane.seed).fork("receiver", lane.self.value * lanes + lane.lane);
  std::vector<std::size_t> next(nodes, 0);
  for (const NodeId from : draw_order(lane.self, random)) {
    const std::uint64_t talk = conversation(from, lane.self, lane.lane);
    const std::size_t number = next.at(from.value)++;
    const std::size_t size = script(lane.seed, talk).at(number);
    const Bytes received = receive_next(lane, from, size, random.below(2) == 0);
    ASSERT_TRUE(received == pattern(size, talk * messages + number))
        << "seed " << lane.seed << ": message " << number << " from node " << from.value
        << " to node " << lane.self.value << " in lane " << lane.lane;
  }
}

TEST_P(TransportContract, SeveralTasksOfSeveralNodesTalkAtTheSameTime) {
  constexpr std::uint64_t seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  cluster->run(nodes, [](World& world) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      tasks.push_back(world.spawn("sender", [&world, lane] { send_all({world, seed, lane}); }));
      tasks.push_back(world.spawn("receiver", [&world, lane] {
        receive_all({world, seed, lane});
      }));
    }
    for (const auto& task : tasks) {
      task->join();
    }
  });
}

}  // namespace
}  // namespace syncopate::contract
