#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "transport/mail/mailbox.hpp"
#include "transport/tcp/connections.hpp"
#include "transport/tcp/driver.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::tcp {

/// A `TcpTransport`: passes messages between the caller, the mailbox and the outboxes of its peers.
/// `Connections` keeps the peers and the streams to them.
///
/// Threads: callers only touch the mailbox, outboxes and the table of peers, each under its mutex;
///          everything with a socket is posted to the engine (`Driver`). Its handlers own
///          connections, and refer to peers by address: no peer is destroyed before the engine has
///          ended.
class Node final : public TcpTransport {
 public:
  explicit Node(Connections::Options options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void listen(const ListenOptions& options);
  void join(const JoinOptions& options);

  NodeId self() const override { return connections_.self(); }
  std::string address() const override { return connections_.address(); }
  void introduce(NodeId peer, const std::string& address) override;
  std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                       std::span<const std::byte> payload) override;
  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into) override;
  void post(NodeId to, Tag tag, std::vector<std::byte> payload) override;
  std::optional<Message> try_receive(std::optional<NodeId> from, Tag tag,
                                     TimePoint deadline) override;
  void give_up(NodeId peer) override { connections_.give_up(peer); }
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
  std::string path_to(NodeId peer) const override { return connections_.path_to(peer); }
  SharedMemory* shared_memory() override { return connections_.memory(); }

 private:
  void fail(const std::exception& error);
  void stop(const std::exception_ptr& why);

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  mail::Mailbox mailbox_;
  Connections connections_;
  Mutex closing_;  ///< held by the thread that closes, for as long as it takes
  Driver driver_;  ///< last: its thread uses everything above
};

}  // namespace syncopate::tcp
