#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/shm/host_memory.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/driver.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/listener.hpp"
#include "transport/tcp/outbox.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::tcp {

/// Another node, from the moment at which it is introduced or makes contact; kept when it is lost.
struct Peer {
  Peer(NodeId number, std::string where, Outbox::Engine engine)
      : id(number), address(std::move(where)), outbox(number, std::move(engine)) {}

  const NodeId id;
  const std::string address;  ///< where it listens
  Outbox outbox;
  std::exception_ptr lost_by{};  ///< guarded by the node's mutex

  // Of the engine alone.
  bool in_contact = false;                 ///< its handshake was accepted
  std::unique_ptr<shm::Duplex> rings;      ///< from the handshake to the connection
  bool lost = false;                       ///< for good: nobody comes back under its number
  std::unique_ptr<Connection> connection;  ///< kept until the engine has ended
};

/// The engine of a `TcpTransport`: who the peers are, and how streams to them begin and end.
///
/// Threads: callers only touch the mailbox, outboxes and the table of peers, each under its mutex;
///          everything with a socket is posted to the engine (`Driver`). Its handlers refer to peers and
///          connections by address: neither is destroyed before it has ended.
class Node final : public TcpTransport {
 public:
  struct Options {
    std::string token;
    bool shares_memory;
    Network network;
    Limits limits;
  };

  explicit Node(Options options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void listen(const ListenOptions& options);
  void join(const JoinOptions& options);

  NodeId self() const override { return self_; }
  std::string address() const override { return to_string(listener_->endpoint()); }
  void introduce(NodeId peer, const std::string& address) override;
  std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                       std::span<const std::byte> payload) override;
  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into) override;
  void post(NodeId to, Tag tag, std::vector<std::byte> payload) override;
  Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) override;
  void give_up(NodeId peer) override;
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
  SharedMemory* shared_memory() override { return memory_.get(); }

 private:
  // In node.cpp, for any thread.
  Peer& find(NodeId peer) const;
  Peer& add(NodeId peer, const std::string& address);  ///< under the mutex
  std::vector<Peer*> peers() const;
  void fail(const std::exception& error);
  void stop(const std::exception_ptr& why);
  void say_goodbye(TimePoint deadline);
  void check(NodeId peer) const;

  // In contacts.cpp, for the engine.
  void accept();
  wire::Welcome judge(const wire::Hello& hello);
  NodeId number_of(const wire::Hello& hello);
  void dial_peer(Peer& peer);
  void settle(Peer& peer, Contact contact);
  void attach(Peer& peer, Socket socket);
  void remember(UnderWay handshake);
  void lose(Peer& peer, const std::string& reason);
  void resume(Peer& peer);
  void flush(Peer& peer);
  void cut(Peer& peer);
  void part_with(Peer& peer, const std::string& reason);
  void leave();
  void disconnect();
  wire::Hello hello(shm::Duplex* rings) const;

  // In sharing.cpp, for the engine.
  std::unique_ptr<shm::Duplex> make_rings() const;
  void accept_sharing(Peer& peer, const wire::Hello& hello, wire::Welcome& welcome);
  void conclude_sharing(Peer& peer, const wire::Welcome& welcome);

  const std::string token_;
  const Limits limits_;
  const Network network_;
  NodeId self_{0};  ///< constant once the node has joined

  /// Null where it is not wanted, or the system has none. Constant once the node has joined.
  std::unique_ptr<shm::HostMemory> memory_;

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::optional<Listener> listener_;
  mail::Mailbox mailbox_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<NodeId, std::unique_ptr<Peer>> peers_;
  std::exception_ptr stopped_;   ///< cancelled or closed: nothing begins any more
  std::size_t connections_ = 0;  ///< that are open

  // Of the engine alone.
  std::uint32_t newcomers_ = 0;  ///< numbers given away, where this node is node 0
  bool leaving_ = false;         ///< what is still shaking hands comes too late
  std::vector<UnderWay> handshakes_;

  std::mutex closing_;  ///< held by the thread that closes, for as long as it takes
  Driver driver_;       ///< last: its thread uses everything above
};

}  // namespace syncopate::tcp
