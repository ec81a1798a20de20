#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "collective/group.hpp"
#include "sim/simulation.hpp"

namespace syncopate {

/// Runs `body` on every rank of a simulated group of `size`, and returns what each made, by rank.
template <class Result>
std::vector<Result> on_every_rank(std::uint32_t size, const std::function<Result(Group&)>& body,
                                  bool shared_memory = false) {
  sim::Simulation simulation({.seed = 1, .shared_memory = shared_memory});
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    nodes.push_back(NodeId{rank});
  }
  std::vector<Result> results(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    simulation.add_node("rank", [&, rank](World& world) {
      for (const NodeId peer : nodes) {
        if (peer.value != rank) {
          world.transport().introduce(peer, sim::address_of(peer));
        }
      }
      Group group(world, {.members = nodes, .self = Rank{rank}});
      results[rank] = body(group);
      world.transport().close(world.now() + std::chrono::minutes(1));
    });
  }
  simulation.run();
  return results;
}

}  // namespace syncopate
