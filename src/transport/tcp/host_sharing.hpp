#pragma once

#include <memory>

#include "transport/shm/byte_ring.hpp"
#include "transport/shm/host_memory.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {

/// The memory that this node shares with the nodes of its host. A handshake carries the addresses
/// of the segments; both nodes use the rings, or neither does.
///
/// Threads: any thread calls `memory`, once the node has joined; the engine calls the rest.
class HostSharing {
 public:
  /// `check`: see `shm::HostMemory`. The node shares no memory if it is not `wanted` or the system
  /// has none.
  HostSharing(bool wanted, shm::HostMemory::Check check);

  /// Null if the node shares none.
  shm::HostMemory* memory() const { return memory_.get(); }
  /// Makes this node's own memory reachable under its number.
  void introduce_self(NodeId self);
  /// Stops sharing memory, because the coordinator shares none.
  void disable() { memory_.reset(); }

  /// Makes rings for a node that this one dials. Returns null if this node shares no memory.
  std::unique_ptr<shm::Duplex> make_rings() const;
  /// Adds the addresses of this node's memory and of `rings`, which may be null, to a Hello.
  void announce(wire::Hello& hello, const shm::Duplex* rings) const;
  /// Maps the memory that the dialling node announces, answers in `welcome`, and returns the rings,
  /// or null.
  std::unique_ptr<shm::Duplex> accept(NodeId peer, const wire::Hello& hello,
                                      wire::Welcome& welcome);
  /// Records the memory that the dialled node announces.
  void conclude(NodeId peer, const wire::Welcome& welcome);

 private:
  std::unique_ptr<shm::HostMemory> memory_;
};

}  // namespace syncopate::tcp
