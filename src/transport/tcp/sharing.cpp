// How two nodes find that they are on one host, and agree to use the memory that they can share: the
// part of Node for which a handshake carries segments.

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/shm/announcement.hpp"
#include "transport/tcp/node.hpp"

namespace syncopate::tcp {

wire::Hello Node::hello(shm::Duplex* rings) const {
  wire::Hello hello;
  hello.set_token(token_);
  hello.set_address(address());
  if (rings != nullptr) {
    *hello.mutable_rings() = shm::announce(rings->address());
  }
  if (memory_) {
    *hello.mutable_memory() = shm::announce(memory_->address());
  }
  return hello;
}

/// Of a node that dials, which does not know yet where the other one is.
std::unique_ptr<shm::Duplex> Node::make_rings() const {
  if (!memory_) {
    return nullptr;
  }
  try {
    return std::make_unique<shm::Duplex>(shm::Duplex::create());
  } catch (const DataError& error) {
    log::warn("{}; a peer is reached through a socket", error.what());
    return nullptr;
  }
}

/// Both sides use the rings, or neither does: who was dialled says so when it has mapped them.
void Node::accept_sharing(Peer& peer, const wire::Hello& hello, wire::Welcome& welcome) {
  if (!memory_) {
    return;
  }
  *welcome.mutable_memory() = shm::announce(memory_->address());
  if (hello.has_memory()) {
    memory_->introduce(peer.id, shm::read(hello.memory()));
  }
  if (hello.has_rings()) {
    try {
      peer.rings = std::make_unique<shm::Duplex>(shm::Duplex::open(shm::read(hello.rings())));
    } catch (const DataError& error) {
      log::debug("node {} is reached through a socket: {}", peer.id.value, error.what());
    }
  }
  welcome.set_rings(peer.rings != nullptr);
}

void Node::conclude_sharing(Peer& peer, const wire::Welcome& welcome) {
  if (memory_ && peer.id.value == welcome.node() && welcome.has_memory()) {
    memory_->introduce(peer.id, shm::read(welcome.memory()));
  }
  if (!welcome.rings()) {
    peer.rings.reset();
  }
}

}  // namespace syncopate::tcp
