#include "transport/tcp/connections.hpp"

#include <fmt/format.h>

#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/system_error.hpp>
#include <future>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/steady_time.hpp"
#include "transport/tcp/interfaces.hpp"

namespace syncopate::tcp {
namespace {

/// If very many nodes dial a peer at once, it may close a stream before it has read the Hello.
constexpr int attempts_to_dial = 5;

/// True if the other side broke a stream that it had accepted.
bool is_broken(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const asio::system_error& broken) {
    return broken.code() == asio::error::eof || broken.code() == asio::error::connection_reset;
  } catch (const std::exception&) {
    return false;
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

}  // namespace

Connections::Connections(asio::io_context& io, mail::Mailbox& mailbox,
                         mail::ProgressFunction progress, Options options)
    : io_(io),
      mailbox_(mailbox),
      progress_(std::move(progress)),
      token_(std::move(options.token)),
      limits_(options.limits),
      control_only_(options.control_only),
      network_(options.network),
      tls_(network_ == Network::encrypted ? std::make_unique<Tls>(token_) : nullptr),
      sharing_(options.shares_memory, [this](NodeId peer) { check(peer); }),
      wrong_keys_(options.limits.wrong_key_delay) {}

void Connections::listen(const TcpTransport::ListenOptions& options) {
  listeners_.emplace_back(
      io_, options.descriptor ? adopt_listener(io_, *options.descriptor, network_)
                              : open_listener(io_, resolve_address(options.address, network_)));
  sharing_.introduce_self(self_);
}

/// At another address than that of the route to the coordinator a process that is none of the job
/// may answer. A node must not show it the token, so these streams are encrypted.
Endpoint Connections::open_listeners(const TcpTransport::JoinOptions& options) {
  const Endpoint coordinator = resolve_address(options.coordinator, network_);
  const Endpoint own = resolve_address(
      options.address.empty() ? address_towards(coordinator) + ":0" : options.address, network_);
  Acceptor first = open_listener(io_, own, options.ports);
  const bool several = network_ == Network::encrypted && !own.address().is_loopback();
  own_addresses_ = several ? own_addresses() : Addresses();
  if (!several || !options.all_interfaces) {
    listeners_.emplace_back(io_, std::move(first));
    return coordinator;
  }
  for (Acceptor& acceptor : on_all_interfaces(io_, std::move(first))) {
    listeners_.emplace_back(io_, std::move(acceptor));
  }
  return coordinator;
}

std::string Connections::address() const {
  Endpoints own;
  for (const Listener& listener : listeners_) {
    own.push_back(listener.endpoint());
  }
  return to_string(own);
}

void Connections::join(const Endpoint& coordinator, std::chrono::milliseconds timeout) {
  // The handler owns the promise, too, because it may still run when this function has the answer.
  const auto answered = std::make_shared<std::promise<HandshakeResult>>();
  std::unique_ptr<shm::Duplex> rings = sharing_.make_rings();
  asio::post(io_, [=, this, greeting = hello(rings.get())] {
    dial_until_there(
        io_, {coordinator, greeting, tls_.get(), timeout},
        [answered](HandshakeResult result) { answered->set_value(std::move(result)); });
  });
  HandshakeResult result = answered->get_future().get();
  if (result.error) {
    std::rethrow_exception(result.error);
  }
  self_ = NodeId{result.welcome.you()};
  if (!result.welcome.has_memory()) {
    sharing_.disable();
  }
  sharing_.introduce_self(self_);
  const MutexLock lock(mutex_);
  Peer& peer = add(coordinator_node, {coordinator});
  peer.rings = std::move(rings);
  asio::post(io_, [this, &peer, result = std::move(result)]() mutable {
    finish_handshake(peer, std::move(result));
    accept();
  });
}

std::string Connections::path_to(NodeId peer) const {
  const MutexLock lock(mutex_);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? "" : found->second->path;
}

void Connections::introduce(NodeId peer, const std::string& address) {
  const Endpoints where = parse_addresses(address, network_);
  const MutexLock lock(mutex_);
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
  if (peer == self_) {
    return;
  }
  if (const auto known = peers_.find(peer); known != peers_.end()) {
    if (known->second->addresses != where) {
      throw InternalError(fmt::format("node {} is at {}, but was introduced at {}", peer.value,
                                      to_string(known->second->addresses), address));
    }
    return;
  }
  Peer& added = add(peer, where);
  if (peer < self_) {
    asio::post(io_, [this, &added] { dial_peer(added, attempts_to_dial); });
  }
}

Peer& Connections::find(NodeId peer) const {
  const MutexLock lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) {
    throw InternalError(
        fmt::format("node {} was never introduced and has not dialled this node", peer.value));
  }
  return *found->second;
}

std::vector<Peer*> Connections::peers() const {
  const MutexLock lock(mutex_);
  std::vector<Peer*> all;
  for (const auto& [id, peer] : peers_) {
    all.push_back(peer.get());
  }
  return all;
}

void Connections::resume(NodeId peer) {
  asio::post(io_, [this, peer] {
    if (const auto connection = find(peer).connection) {
      connection->resume();
    }
  });
}

void Connections::give_up(NodeId peer) {
  Peer& given_up = find(peer);
  asio::post(io_, [this, &given_up] {
    part_with(given_up, "this node has given it up");
    mailbox_.forget(given_up.id);
  });
}

void Connections::stop(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  if (!stopped_) {
    stopped_ = why;
  }
}

/// Closing a stream with unread bytes destroys bytes that travel the other way. So each node first
/// signals that it will send no more, and reads until its peer has done the same.
void Connections::say_goodbye(TimePoint deadline) {
  asio::post(io_, [this] { leave(); });
  MutexLock lock(mutex_);
  changed_.wait_until(lock.native(), to_steady(deadline),
                      [this]() REQUIRES(mutex_) { return connections_ == 0; });
}

Peer& Connections::add(NodeId peer, const Endpoints& addresses) {
  const auto flush = [this, peer] {
    if (const auto connection = find(peer).connection) {
      connection->flush();
    }
  };
  const Outbox::Engine engine{
      [this, flush] { asio::post(io_, flush); },
      [this, peer] { asio::post(io_, [this, peer] { cut(find(peer)); }); },
      progress_,
  };
  Peer& added = *(peers_[peer] = std::make_unique<Peer>(peer, addresses, engine));
  if (stopped_) {
    added.outbox.refuse(stopped_);
  }
  return added;
}

/// Throws if this node is stopped or the peer is lost.
void Connections::check(NodeId peer) const {
  const MutexLock lock(mutex_);
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
  const auto found = peers_.find(peer);
  if (found != peers_.end() && found->second->lost_by) {
    std::rethrow_exception(found->second->lost_by);
  }
}

wire::Hello Connections::hello(const shm::Duplex* rings) const {
  wire::Hello hello;
  hello.set_token(token_);
  hello.set_address(address());
  sharing_.announce(hello, rings);
  return hello;
}

void Connections::accept() {
  for (Listener& listener : listeners_) {
    listener.start([this](Socket socket) { answer(std::move(socket)); },
                   [this] { return unauthenticated_.close_oldest(); });
  }
}

void Connections::answer(Socket socket) {
  const std::size_t left = descriptors_are_scarce(socket) ? 0 : Unauthenticated::most - 1;
  if (unauthenticated_.shrink_to(left) > 0 && !std::exchange(warned_of_silence_, true)) {
    log::warn(
        "many processes connect to {} and do not introduce themselves: the oldest of these "
        "connections are closed",
        address());
  }
  const PendingHandshake handshake = answer_handshake(
      std::move(socket), tls_.get(), limits_.handshake_timeout,
      {.validate = [this](const wire::Hello& hello,
                          const std::string& from) { return validate(hello, from); },
       .finished =
           [this](HandshakeResult result) {
             Peer& caller = find(NodeId{result.welcome.you()});
             finish_handshake(caller, std::move(result));
           },
       .turned_away =
           [this](const std::string& remote, const std::string& reason) {
             refusals_.add(remote, reason, steady_now());
           }});
  unauthenticated_.add(handshake);
  remember(handshake);
}

wire::Welcome Connections::validate(const wire::Hello& hello, const std::string& from) {
  if (!wire::is_same_secret(hello.token(), token_)) {
    throw WrongKey(
        fmt::format("the job token is wrong: {} belongs to another job, or another key was "
                    "given; its coordinator shows the command to join with (--secret)",
                    address()),
        wrong_keys_.count(from));
  }
  wire::Welcome welcome;
  welcome.set_node(self_.value);
  if (hello.measures()) {
    return welcome;
  }
  const Endpoints where = parse_addresses(hello.address(), network_);
  const NodeId caller = number_of(hello);
  const MutexLock lock(mutex_);
  const auto known = peers_.find(caller);
  Peer& peer = known == peers_.end() ? add(caller, where) : *known->second;
  if (peer.in_handshake || peer.lost) {
    throw ConfigError(
        fmt::format("node {} has been connected to node {} before", caller.value, self_.value));
  }
  peer.in_handshake = true;
  welcome.set_you(caller.value);
  peer.rings = sharing_.accept(caller, hello, welcome);
  return welcome;
}

NodeId Connections::number_of(const wire::Hello& hello) {
  const bool is_coordinator = self_ == coordinator_node;
  if (!hello.has_node()) {
    if (!is_coordinator) {
      throw ConfigError(
          fmt::format("{} is node {}: join at the address of node 0", address(), self_.value));
    }
    return NodeId{++last_number_};
  }
  if (is_coordinator || hello.node() <= self_.value) {
    throw ConfigError(fmt::format("expected node {} to dial node {}, not the other way",
                                  self_.value, hello.node()));
  }
  return NodeId{hello.node()};
}

void Connections::dial_peer(Peer& peer, int attempts) {
  peer.in_handshake = true;
  peer.rings = sharing_.make_rings();
  wire::Hello greeting = hello(peer.rings.get());
  greeting.set_node(self_.value);
  const Dial order{peer.addresses.front(), greeting, tls_.get(), limits_.handshake_timeout};
  const auto finished = [this, &peer, attempts](HandshakeResult result) {
    finish_dial(peer, attempts, std::move(result));
  };
  if (peer.addresses.size() == 1) {
    return remember(dial(io_, order, finished));
  }
  const auto failed = [finished](const std::exception_ptr& why) {
    finished({why, {}, std::nullopt});
  };
  const auto without_probes = [this, &peer, order, finished,
                               failed](const std::exception_ptr& why) {
    if (leaving_ || peer.lost) {
      return failed(why);
    }
    // All links are too slow for a race, or the addresses have misled.
    start_race(order, {peer.addresses, peer.id, /*probes=*/false, finished, failed});
  };
  const Endpoints promising = leading_there(peer.addresses, own_addresses_);
  start_race(order, {promising, peer.id, promising.size() > 1, finished, without_probes});
}

void Connections::start_race(const Dial& order, const LinkRace& race) {
  for (PendingHandshake& stream : run_race(io_, order, race)) {
    remember(std::move(stream));
  }
}

void Connections::finish_dial(Peer& peer, int attempts, HandshakeResult result) {
  if (result.error && is_broken(result.error) && attempts > 1 && !leaving_ && !peer.lost) {
    return dial_peer(peer, attempts - 1);
  }
  if (!result.error && result.welcome.node() != peer.id.value) {
    result.error = std::make_exception_ptr(
        ProtocolError(fmt::format("node {} answers there", result.welcome.node())));
  }
  finish_handshake(peer, std::move(result));
}

void Connections::remember(PendingHandshake handshake) {
  std::erase_if(handshakes_, [](const PendingHandshake& known) { return known.expired(); });
  handshakes_.push_back(std::move(handshake));
}

void Connections::finish_handshake(Peer& peer, HandshakeResult result) {
  if (peer.lost) {
    return;
  }
  if (result.error) {
    lose(peer, text_of(result.error));
  } else if (leaving_) {
    lose(peer, "this node is leaving");
  } else {
    sharing_.conclude(peer.id, result.welcome);
    if (!result.welcome.rings()) {
      peer.rings.reset();
    }
    attach(peer, *std::move(result.channel));
  }
}

void Connections::attach(Peer& peer, Channel channel) {
  const std::string path =
      peer.rings ? "shared memory"
                 : fmt::format("{}, {}", remote_address(channel.socket()),
                               channel.tls() != nullptr ? "TLS 1.3" : "not encrypted");
  {
    const MutexLock lock(mutex_);
    ++connections_;
    peer.path = path;
  }
  const auto connection = std::make_shared<Connection>(
      Stream(std::move(channel), std::move(peer.rings)), mailbox_, peer.outbox,
      Connection::Options{peer.id,
                          {self_, limits_.message_bytes, control_only_},
                          [this, &peer](const std::string& reason) { lose(peer, reason); }});
  peer.connection = connection;
  connection->start();
}

void Connections::lose(Peer& peer, const std::string& reason) {
  if (std::exchange(peer.lost, true)) {
    return;
  }
  const auto why = std::make_exception_ptr(
      PeerLost(peer.id, fmt::format("node {} ({}) is lost: {}", peer.id.value,
                                    to_string(peer.addresses.front()), reason)));
  peer.outbox.fail(why);
  mailbox_.lose(peer.id, why);
  const MutexLock lock(mutex_);
  peer.lost_by = why;
  peer.rings.reset();
  if (std::exchange(peer.connection, nullptr)) {
    --connections_;
    changed_.notify_all();
  }
}

void Connections::cut(Peer& peer) {
  if (const auto connection = peer.connection) {
    connection->cut();
  } else {
    lose(peer, "a send to it timed out before there was a connection");
  }
}

/// A node that has just been welcomed regards the stream as a connection and waits for its end. So
/// this node breaks handshakes under way here, not when it is destroyed.
void Connections::leave() {
  leaving_ = true;
  for (Listener& listener : listeners_) {
    listener.close();
  }
  for (const PendingHandshake& handshake : handshakes_) {
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

void Connections::disconnect() {
  const std::string reason = "this node's transport was closed";
  for (Peer* const peer : peers()) {
    part_with(*peer, reason);
  }
}

void Connections::part_with(Peer& peer, const std::string& reason) {
  if (const auto connection = peer.connection) {
    connection->lose(reason);
  }
  lose(peer, reason);
}

}  // namespace syncopate::tcp
