#include "transport/tcp/host_sharing.hpp"

#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate::tcp {

HostSharing::HostSharing(bool wanted, shm::HostMemory::Check check) {
  if (!wanted) {
    return;
  }
  try {
    memory_ = std::make_unique<shm::HostMemory>(std::move(check));
  } catch (const DataError& error) {
    log::warn("{}; nodes of this host talk through sockets", error.what());
  }
}

void HostSharing::introduce_self(NodeId self) {
  if (memory_) {
    memory_->introduce(self, memory_->address());
  }
}

std::unique_ptr<shm::Duplex> HostSharing::make_rings() const {
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

void HostSharing::announce(wire::Hello& hello, const shm::Duplex* rings) const {
  if (rings != nullptr) {
    *hello.mutable_rings() = shm::announce(rings->address());
  }
  if (memory_) {
    *hello.mutable_memory() = shm::announce(memory_->address());
  }
}

std::unique_ptr<shm::Duplex> HostSharing::accept(NodeId peer, const wire::Hello& hello,
                                                 wire::Welcome& welcome) {
  std::unique_ptr<shm::Duplex> rings;
  if (!memory_) {
    return rings;
  }
  *welcome.mutable_memory() = shm::announce(memory_->address());
  if (hello.has_memory()) {
    memory_->introduce(peer, shm::read(hello.memory()));
  }
  if (hello.has_rings()) {
    try {
      rings = std::make_unique<shm::Duplex>(shm::Duplex::open(shm::read(hello.rings())));
    } catch (const DataError& error) {
      log::debug("node {} is reached through a socket: {}", peer.value, error.what());
    }
  }
  welcome.set_rings(rings != nullptr);
  return rings;
}

void HostSharing::conclude(NodeId peer, const wire::Welcome& welcome) {
  if (memory_ && peer.value == welcome.node() && welcome.has_memory()) {
    memory_->introduce(peer, shm::read(welcome.memory()));
  }
}

}  // namespace syncopate::tcp
