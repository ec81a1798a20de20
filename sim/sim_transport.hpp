#pragma once

#include <string>
#include <vector>

#include "sim/inbox.hpp"
#include "sim/sim_memory.hpp"
#include "sim/sim_network.hpp"
#include "sim/sim_node.hpp"
#include "transport/transport.hpp"

namespace syncopate::sim {

/// The address of a node of the simulation.
std::string address_of(NodeId node);

/// The transport of one simulated node.
///
/// Called from the node's own tasks only. Beyond the contract: `traffic` counts `header_bytes` for
/// each message; a caller that changes a borrowed buffer too early gets an InternalError.
class SimTransport final : public Transport, private Endpoint {
 public:
  /// `host`: the host of the nodes with which it shares memory; null: it shares none.
  SimTransport(Node& node, Network& network, const std::shared_ptr<SimHost>& host);

  NodeId self() const override { return node_.id(); }
  std::string address() const override { return address_of(self()); }
  void introduce(NodeId peer, const std::string& address) override;
  std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                       std::span<const std::byte> payload) override;
  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into) override;
  void post(NodeId to, Tag tag, std::vector<std::byte> payload) override;
  std::optional<Message> try_receive(std::optional<NodeId> from, Tag tag,
                                     TimePoint deadline) override;
  void give_up(NodeId peer) override;
  void cancel(std::exception_ptr why) noexcept override;
  void close(TimePoint deadline) noexcept override;
  Traffic traffic() const override;
  Traffic traffic_to(NodeId peer) const override;
  std::string path_to(NodeId peer) const override;
  SharedMemory* shared_memory() override { return memory_ ? &*memory_ : nullptr; }

  /// Closes at once: unsent messages are lost. The peers find `why` in their errors.
  void shut(const std::string& why);
  /// Both ends of the stream to `peer` find the other lost.
  void cut(NodeId peer, const std::string& why);

 private:
  class StartedSend;
  class StartedReceive;
  enum class Relation : std::uint8_t { unknown, known, lost };

  bool is_open() const override { return open_; }
  bool knows(NodeId peer) const override { return relation(peer) == Relation::known; }
  bool accepts(NodeId peer) const override { return relation(peer) != Relation::lost; }
  void deliver(Message message) override;
  void lose(NodeId peer, const std::string& why) override;

  Relation relation(NodeId peer) const;
  void relate(NodeId peer, Relation relation);
  void check() const;
  void check_peer(NodeId peer) const;
  void check_presence(NodeId peer) const;
  void count(NodeId to, std::size_t bytes);

  Node& node_;
  Network& network_;
  std::optional<SimMemory> memory_;
  Inbox inbox_;
  std::vector<Relation> relations_;  // by node
  std::map<NodeId, std::string> losses_;
  std::exception_ptr ended_by_;  // by `cancel` or `close`
  bool open_ = true;
  Traffic traffic_;
  std::map<NodeId, Traffic> traffic_to_;  ///< by receiver
};

}  // namespace syncopate::sim
