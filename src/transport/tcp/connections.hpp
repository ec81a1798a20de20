#pragma once

#include <asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "transport/mail/mailbox.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/host_sharing.hpp"
#include "transport/tcp/interfaces.hpp"
#include "transport/tcp/link_race.hpp"
#include "transport/tcp/listener.hpp"
#include "transport/tcp/outbox.hpp"
#include "transport/tcp/refusals.hpp"
#include "transport/tcp/tcp_handshake.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::tcp {

/// Another node, from the time when it is introduced or dials this one; kept after it is lost.
struct Peer {
  Peer(NodeId number, Endpoints where, Outbox::Engine engine)
      : id(number), addresses(std::move(where)), outbox(number, std::move(engine)) {}

  const NodeId id;
  const Endpoints addresses;  ///< at which it listens
  Outbox outbox;

  // Guarded by the mutex of `Connections`.
  std::exception_ptr lost_by{};
  std::string path{};  ///< as `Transport::path_to`

  // Only the engine uses these.
  bool in_handshake = false;               ///< a handshake with it has begun, or is complete
  std::unique_ptr<shm::Duplex> rings;      ///< from the handshake to the connection
  bool lost = false;                       ///< forever: its number is not used again
  std::shared_ptr<Connection> connection;  ///< until it is lost
};

/// The peers of a node and the streams to them: accepts and dials, validates handshakes, numbers
/// the nodes that join, declares losses.
///
/// Threads: see the comment above each section. The table of peers has a mutex.
class Connections {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    bool control_only;
    Network network;
    TcpTransport::Limits limits;
  };

  /// `io` and `mailbox` outlive this. A thread that waits for a send calls `progress`.
  Connections(asio::io_context& io, mail::Mailbox& mailbox, mail::ProgressFunction progress,
              Options options);

  // Before the engine starts.
  /// Opens the listener of node 0.
  void listen(const TcpTransport::ListenOptions& options);
  /// Opens the listeners of another node. Returns the address of node 0.
  Endpoint open_listeners(const TcpTransport::JoinOptions& options);

  // Any thread, once the engine runs.
  /// Gets a number from node 0, and accepts streams from then on. Errors: as `TcpTransport::join`.
  void join(const Endpoint& coordinator, std::chrono::milliseconds timeout);
  NodeId self() const { return self_; }
  std::string address() const;
  shm::HostMemory* memory() const { return sharing_.memory(); }
  std::string path_to(NodeId peer) const;
  void introduce(NodeId peer, const std::string& address);
  /// Errors: InternalError if the peer is unknown.
  Peer& find(NodeId peer) const;
  std::vector<Peer*> peers() const;
  /// Continues to read from a peer that the mailbox had held back.
  void resume(NodeId peer);
  /// Cuts the stream to a peer.
  void give_up(NodeId peer);
  /// Refuses introductions and sends from now on, with `why`. Only the first call has an effect.
  void stop(const std::exception_ptr& why);
  /// Tells every peer that this node sends no more, and waits until all peers have done the same.
  void say_goodbye(TimePoint deadline);

  // The engine.
  void accept();
  void disconnect();

 private:
  // Any thread.
  Peer& add(NodeId peer, const Endpoints& addresses) REQUIRES(mutex_);
  void check(NodeId peer) const;
  wire::Hello hello(const shm::Duplex* rings) const;

  // The engine.
  void answer(Socket socket);
  wire::Welcome validate(const wire::Hello& hello, const std::string& address);
  NodeId number_of(const wire::Hello& hello);
  void dial_peer(Peer& peer, int attempts);
  void start_race(const Dial& order, const LinkRace& race);
  void finish_dial(Peer& peer, int attempts, HandshakeResult result);
  void finish_handshake(Peer& peer, HandshakeResult result);
  void attach(Peer& peer, Channel channel);
  void remember(PendingHandshake handshake);
  void lose(Peer& peer, const std::string& reason);
  void cut(Peer& peer);
  void part_with(Peer& peer, const std::string& reason);
  void leave();

  asio::io_context& io_;
  mail::Mailbox& mailbox_;
  const mail::ProgressFunction progress_;
  const std::string token_;
  const TcpTransport::Limits limits_;
  const bool control_only_;
  const Network network_;
  const std::unique_ptr<Tls> tls_;  ///< of an encrypted network
  NodeId self_{0};                  ///< constant once the node has joined
  HostSharing sharing_;             ///< its memory also
  std::list<Listener> listeners_;   ///< one an address
  Addresses own_addresses_;         ///< of the host of a node that may dial others at several

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::map<NodeId, std::unique_ptr<Peer>> peers_ GUARDED_BY(mutex_);
  /// Cancelled or closed: no operation begins any more.
  std::exception_ptr stopped_ GUARDED_BY(mutex_);
  std::size_t connections_ GUARDED_BY(mutex_) = 0;  ///< number of open connections

  // Only the engine uses these.
  std::uint32_t last_number_ = 0;  ///< the last one given to a joining node, by node 0
  bool leaving_ = false;           ///< a handshake that ends now comes too late
  std::vector<PendingHandshake> handshakes_;
  Unauthenticated unauthenticated_;
  WrongKeys wrong_keys_;
  RefusalLog refusals_;
  bool warned_of_silence_ = false;
};

}  // namespace syncopate::tcp
