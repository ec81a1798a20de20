#pragma once

#include <memory>

#include "transport/shm/byte_ring.hpp"
#include "transport/shm/host_memory.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {

/// The memory that this node shares with the nodes of its host. A handshake carries the addresses
/// of the segments; both nodes use the rings, or neither does.
///
/// Threads: `memory` any, once the node has joined; the rest the engine.
class HostSharing {
 public:
  /// `check`: as of `shm::HostMemory`. Without `wanted`, and where the system has no shared memory,
  /// the node shares none.
  HostSharing(bool wanted, shm::HostMemory::Check check);

  /// Null where the node shares none.
  shm::HostMemory* memory() const { return memory_.get(); }
  /// Makes this node's own memory reachable under its number.
  void introduce_self(NodeId self);
  /// Shares no memory: the coordinator shares none.
  void disable() { memory_.reset(); }

  /// Rings for a node that this one dials. Null where the node shares none.
  std::unique_ptr<shm::Duplex> make_rings() const;
  /// Adds the addresses of this node's memory and of `rings`, which may be null, to a Hello.
  void announce(wire::Hello& hello, const shm::Duplex* rings) const;
  /// Maps what the dialling node announces, answers in `welcome`, and returns the rings, or null.
  std::unique_ptr<shm::Duplex> accept(NodeId peer, const wire::Hello& hello,
                                      wire::Welcome& welcome);
  /// Records the memory that the node which was dialled announces.
  void conclude(NodeId peer, const wire::Welcome& welcome);

 private:
  std::unique_ptr<shm::HostMemory> memory_;
};

}  // namespace syncopate::tcp
