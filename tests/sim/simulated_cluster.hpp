#pragma once

#include <string>
#include <vector>

#include "sim/simulation.hpp"

namespace syncopate::sim {

inline constexpr Tag data{100};
inline constexpr Tag control{101};

/// Introduces all other nodes of a cluster to a node.
inline void meet(World& world, std::uint32_t nodes) {
  for (std::uint32_t peer = 0; peer < nodes; ++peer) {
    if (NodeId{peer} != world.transport().self()) {
      world.transport().introduce(NodeId{peer}, address_of(NodeId{peer}));
    }
  }
}

/// Adds `nodes` nodes that know each other, run `body` and then close their transports.
inline void populate(Simulation& simulation, std::uint32_t nodes,
                     const std::function<void(World&)>& body) {
  for (std::uint32_t node = 0; node < nodes; ++node) {
    simulation.add_node("worker", [nodes, body](World& world) {
      meet(world, nodes);
      body(world);
      world.transport().close(no_deadline);
    });
  }
}

inline Duration since_start(const World& world) {
  return world.now().time_since_epoch();
}

}  // namespace syncopate::sim
