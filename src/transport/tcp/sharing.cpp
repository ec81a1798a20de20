// How two nodes find that they are on one host, and agree to use the memory that they can share: the
// part of Node for which a handshake carries segments.

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/tcp/node.hpp"

namespace syncopate::tcp {
namespace {

void write(const shm::SegmentAddress& address, wire::SharedSegment& out) {
  out.set_machine(address.machine);
  out.set_pid(address.pid);
  out.set_file(address.descriptor);
  out.set_secret_begin(address.secret[0]);
  out.set_secret_end(address.secret[1]);
}

shm::SegmentAddress read(const wire::SharedSegment& segment) {
  return {.machine = segment.machine(),
          .pid = segment.pid(),
          .descriptor = segment.file(),
          .secret = {segment.secret_begin(), segment.secret_end()}};
}

}  // namespace

wire::Hello Node::hello(shm::Duplex* rings) const {
  wire::Hello hello;
  hello.set_token(token_);
  hello.set_address(address());
  if (rings != nullptr) {
    write(rings->address(), *hello.mutable_rings());
  }
  if (memory_) {
    write(memory_->address(), *hello.mutable_memory());
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
  write(memory_->address(), *welcome.mutable_memory());
  if (hello.has_memory()) {
    memory_->introduce(peer.id, read(hello.memory()));
  }
  if (hello.has_rings()) {
    try {
      peer.rings = std::make_unique<shm::Duplex>(shm::Duplex::open(read(hello.rings())));
    } catch (const DataError& error) {
      log::debug("node {} is reached through a socket: {}", peer.id.value, error.what());
    }
  }
  welcome.set_rings(peer.rings != nullptr);
}

void Node::conclude_sharing(Peer& peer, const wire::Welcome& welcome) {
  if (memory_ && peer.id.value == welcome.node() && welcome.has_memory()) {
    memory_->introduce(peer.id, read(welcome.memory()));
  }
  if (!welcome.rings()) {
    peer.rings.reset();
  }
}

}  // namespace syncopate::tcp
