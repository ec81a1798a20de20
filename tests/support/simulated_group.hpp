#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "collective/group.hpp"
#include "sim/simulation.hpp"

namespace syncopate {

/// A group in the simulator.
struct SimulatedGroup {
  std::uint32_t size = 1;
  std::vector<std::uint32_t> hosts{};  ///< host of each rank; empty: each rank has its own host
  sim::NetworkProfile network{};
  LinkProfile within{};  ///< links between ranks of one host
  bool shared_memory = false;
};

/// Runs `body` on every rank of a simulated group, and returns their results, by rank.
template <class Result>
std::vector<Result> on_every_rank(const SimulatedGroup& group,
                                  const std::function<Result(Group&)>& body) {
  sim::Simulation simulation(
      {.seed = 1, .network = group.network, .shared_memory = group.shared_memory});
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < group.size; ++rank) {
    nodes.push_back(NodeId{rank});
  }
  std::vector<Result> results(group.size);
  for (std::uint32_t rank = 0; rank < group.size; ++rank) {
    simulation.add_node("rank", [&, rank](World& world) {
      for (const NodeId peer : nodes) {
        if (peer.value != rank) {
          world.transport().introduce(peer, sim::address_of(peer));
        }
      }
      Group members(world, {.members = nodes, .self = Rank{rank}, .hosts = group.hosts});
      results[rank] = body(members);
      world.transport().close(world.now() + std::chrono::minutes(1));
    });
  }
  for (std::uint32_t one = 0; one < group.hosts.size(); ++one) {
    for (std::uint32_t other = 0; other < one; ++other) {
      if (group.hosts[one] == group.hosts[other]) {
        simulation.set_link(NodeId{one}, NodeId{other}, group.within);
      }
    }
  }
  simulation.run();
  return results;
}

/// The same for a group of `size` ranks, each on its own host.
template <class Result>
std::vector<Result> on_every_rank(std::uint32_t size, const std::function<Result(Group&)>& body) {
  return on_every_rank<Result>(SimulatedGroup{.size = size}, body);
}

}  // namespace syncopate
