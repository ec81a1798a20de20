#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_node.hpp"
#include "sim/trace.hpp"
#include "sim/transfer_times.hpp"
#include "transport/transport.hpp"

namespace syncopate::sim {

/// Bytes of a message on the link beyond its payload.
inline constexpr std::size_t header_bytes = 24;

/// A payload that a send borrows from its caller until the sender's network card has read it.
struct BorrowedBuffer {
  std::span<const std::byte> payload;
  std::uint64_t fingerprint = 0;  ///< of the payload when the send began
  Completion completion{};
};

/// A message for the network: its payload, or the buffer that holds it.
struct Departure {
  NodeId from;
  NodeId to;
  Tag tag;
  std::vector<std::byte> payload;
  BorrowedBuffer* buffer = nullptr;
};

/// One node as the network sees it.
class Endpoint {
 public:
  virtual bool is_open() const = 0;
  /// True if the node was introduced to `peer` or has received a message from it.
  virtual bool knows(NodeId peer) const = 0;
  /// True while messages from `peer` are accepted.
  virtual bool accepts(NodeId peer) const = 0;
  virtual void deliver(Message message) = 0;
  /// The stream from `peer` has ended.
  virtual void lose(NodeId peer, const std::string& why) = 0;

 protected:
  ~Endpoint() = default;
};

/// Carries messages between endpoints in virtual time, with the delays of `TransferTimes`.
///
/// All messages from one node to another form one stream and arrive in order. When a stream ends,
/// the messages that the sender's network card has sent arrive, and the end is reported after them.
/// Other messages are dropped, but the network cards stay busy for the time that they booked.
class Network final : private EventTarget {
 public:
  Network(Scheduler& scheduler, const Trace& trace, TransferTimes times)
      : scheduler_(scheduler), trace_(trace), times_(std::move(times)) {}

  /// Adds the endpoint of the next node: the n-th call that of node n − 1.
  void attach(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }

  void send(Departure departure);
  /// The time at which all messages of `node` so far are sent.
  TimePoint sent_by(NodeId node) { return times_.sent_by(node); }
  /// Changes the link between two nodes, in both directions, from now on.
  void set_link(NodeId one, NodeId other, const LinkProfile& profile);

  /// True while the endpoint of `node` is open.
  bool is_open(NodeId node) const;
  /// Ends the stream between two nodes, one way.
  void cut(NodeId from, NodeId to, const std::string& why);
  /// Ends the streams of `node` to all other nodes.
  void disconnect(NodeId node, const std::string& why);
  /// Ends the sends of `from`, to `to` or to all nodes, that still borrow their buffers: each
  /// completes with `error`, its message is dropped and its stream is cut.
  void end_sends(NodeId from, std::optional<NodeId> to, const std::exception_ptr& error);

 private:
  /// A message on its way.
  struct Packet {
    Departure departure;
    Passage passage;
    bool dropped = false;
  };
  /// The end of a stream on its way.
  struct Ending {
    NodeId from;
    NodeId to;
    std::shared_ptr<const std::string> why;  ///< shared by the endings of one disconnection
  };
  /// Everything from one node to another.
  struct Stream {
    std::uint32_t under_way = 0;  ///< packets that are not dropped
    bool cut = false;
  };
  /// The subject of an event: the low two bits of its argument. The others are an index.
  enum class Stage : std::uint64_t { sent, first_byte, arrived, ending };

  void fire(std::uint64_t argument) override;
  void schedule(TimePoint when, Stage stage, std::size_t index);
  void drop(Packet& packet);
  void drop_unsent(NodeId from, std::optional<NodeId> to);
  void return_buffer(Packet& packet);
  void enter(std::size_t index);
  void arrive(std::size_t index);
  void deliver(Departure departure);
  void begin_end(std::size_t index);
  void end(const Ending& ending);
  void announce(const Ending& ending);
  Stream& stream(NodeId from, NodeId to);
  Endpoint* open_endpoint(NodeId node) const;

  Scheduler& scheduler_;
  const Trace& trace_;
  TransferTimes times_;
  std::vector<Endpoint*> endpoints_;  // by node
  std::deque<Packet> packets_;
  std::vector<std::size_t> free_packets_;  // indices into `packets_`, marked as dropped
  std::deque<Ending> endings_;
  std::vector<std::size_t> free_endings_;
  std::vector<std::vector<Stream>> streams_;                  // by sender, then receiver
  std::map<std::pair<NodeId, NodeId>, Ending> held_endings_;  // behind messages under way
};

}  // namespace syncopate::sim
