// How a node meets its peers and loses them: the part of Node that its engine runs.

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "transport/tcp/exchange.hpp"
#include "transport/tcp/node.hpp"

namespace syncopate::tcp {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

}  // namespace

void Node::accept() {
  listener_->start([this](Socket socket) {
    remember(answer_handshake(
        std::move(socket), limits_.handshake_timeout,
        [this](const wire::Hello& hello) { return judge(hello); },
        [this](Contact contact) {
          Peer& caller = find(NodeId{contact.welcome.you()});
          settle(caller, std::move(contact));
        }));
  });
}

wire::Welcome Node::judge(const wire::Hello& hello) {
  if (!wire::is_same_secret(hello.token(), token_)) {
    throw ConfigError(fmt::format(
        "the job token is wrong: {} belongs to another job, or the token was mistyped", address()));
  }
  const std::string where = to_string(parse_address(hello.address(), network_));
  const NodeId caller = number_of(hello);
  const std::lock_guard lock(mutex_);
  const auto known = peers_.find(caller);
  Peer& peer = known == peers_.end() ? add(caller, where) : *known->second;
  if (peer.in_contact || peer.lost) {
    throw ConfigError(
        fmt::format("node {} has been in contact with node {} before", caller.value, self_.value));
  }
  peer.in_contact = true;
  wire::Welcome welcome;
  welcome.set_node(self_.value);
  welcome.set_you(caller.value);
  accept_sharing(peer, hello, welcome);
  return welcome;
}

NodeId Node::number_of(const wire::Hello& hello) {
  const bool is_coordinator = self_ == coordinator_node;
  if (!hello.has_node()) {
    if (!is_coordinator) {
      throw ConfigError(
          fmt::format("{} is node {}: join at the address of node 0", address(), self_.value));
    }
    return NodeId{++newcomers_};
  }
  if (is_coordinator || hello.node() <= self_.value) {
    throw ConfigError(fmt::format("expected node {} to dial node {}, not the other way",
                                  self_.value, hello.node()));
  }
  return NodeId{hello.node()};
}

void Node::dial_peer(Peer& peer) {
  peer.in_contact = true;
  peer.rings = make_rings();
  wire::Hello greeting = hello(peer.rings.get());
  greeting.set_node(self_.value);
  const Dial order{parse_address(peer.address, network_), greeting, limits_.handshake_timeout};
  remember(dial(io_, order, [this, &peer](Contact contact) {
    if (!contact.error && contact.welcome.node() != peer.id.value) {
      contact.error = std::make_exception_ptr(
          ProtocolError(fmt::format("node {} answers there", contact.welcome.node())));
    }
    settle(peer, std::move(contact));
  }));
}

void Node::remember(UnderWay handshake) {
  std::erase_if(handshakes_, [](const UnderWay& known) { return known.expired(); });
  handshakes_.push_back(std::move(handshake));
}

void Node::settle(Peer& peer, Contact contact) {
  if (peer.lost) {
    return;
  }
  if (contact.error) {
    lose(peer, text_of(contact.error));
  } else if (leaving_) {
    lose(peer, "this node is leaving");
  } else {
    conclude_sharing(peer, contact.welcome);
    attach(peer, std::move(contact.socket));
  }
}

void Node::attach(Peer& peer, Socket socket) {
  {
    const std::lock_guard lock(mutex_);
    ++connections_;
  }
  peer.connection = std::make_unique<Connection>(
      Stream(std::move(socket), std::move(peer.rings)), mailbox_, peer.outbox,
      Connection::Options{peer.id, limits_.message_bytes,
                          [this, &peer](const std::string& reason) { lose(peer, reason); }});
  peer.connection->start();
}

void Node::lose(Peer& peer, const std::string& reason) {
  if (std::exchange(peer.lost, true)) {
    return;
  }
  const auto why = std::make_exception_ptr(PeerLost(
      peer.id, fmt::format("node {} ({}) is lost: {}", peer.id.value, peer.address, reason)));
  peer.outbox.fail(why);
  mailbox_.lose(peer.id, why);
  const std::lock_guard lock(mutex_);
  peer.lost_by = why;
  if (peer.connection) {
    --connections_;
    changed_.notify_all();
  }
}

void Node::resume(Peer& peer) {
  if (peer.connection) {
    peer.connection->resume();
  }
}

void Node::flush(Peer& peer) {
  if (peer.connection) {
    peer.connection->flush();
  }
}

void Node::cut(Peer& peer) {
  if (peer.connection) {
    peer.connection->cut();
  } else {
    lose(peer, "a send to it timed out before there was a connection");
  }
}

/// Whoever has just been welcomed takes a handshake for a connection, and waits for its end: so those
/// under way are broken here, not when this node is destroyed.
void Node::leave() {
  leaving_ = true;
  listener_->close();
  for (const UnderWay& handshake : handshakes_) {
    if (const auto exchange = handshake.lock()) {
      exchange->abandon();
    }
  }
  for (Peer* const peer : peers()) {
    if (peer->connection) {
      peer->connection->finish_sending();
    }
  }
}

void Node::disconnect() {
  const std::string reason = "this node's transport was closed";
  for (Peer* const peer : peers()) {
    part_with(*peer, reason);
  }
  io_.stop();
}

void Node::part_with(Peer& peer, const std::string& reason) {
  if (peer.connection) {
    peer.connection->lose(reason);
  }
  lose(peer, reason);
}

}  // namespace syncopate::tcp
