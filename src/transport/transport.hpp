#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

class NativeAllreduce;
class SharedMemory;

/// Keeps conversations between the same two nodes apart. `transport/tags.hpp` lists those in use.
struct Tag {
  std::uint32_t value = 0;

  friend constexpr auto operator<=>(Tag, Tag) = default;
};

struct Message {
  NodeId from;
  Tag tag;
  std::vector<std::byte> payload;
};

/// A send or a receive under way. The transport borrows the caller's buffer until the operation
/// ends.
///
/// The destructor withdraws a receive that has not begun to arrive, and otherwise waits until the
/// engine returns the buffer. The loss of the peer and `cancel` return it at once.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Blocks until the caller owns the buffer again: a receive has filled it, a send has read it.
  ///
  /// Errors: TimedOut (a receive may be waited for again; after a send timed out the stream to that
  ///         peer is cut and every operation on it throws PeerLost), PeerLost, ProtocolError (the
  ///         message that arrived is not as long as the buffer), or the error given to `cancel`.
  virtual void wait(TimePoint deadline) = 0;
};

/// Bytes that this node has sent since its start.
struct Traffic {
  std::uint64_t bytes_sent = 0;  ///< headers included, counted when a send begins
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_zero_copy = 0;  ///< read by others in shared memory, without a message
};

/// Throws the error of a receive to which no message has come before its deadline.
[[noreturn]] inline void throw_no_message(std::optional<NodeId> from) {
  if (from) {
    throw PeerTimedOut(*from, "a message did not come before its deadline");
  }
  throw TimedOut("no message came before the deadline");
}

/// Tagged messages between the numbered nodes of one job.
///
/// Order:   messages of one sender under one tag are received in the order in which they were sent;
///          nothing is promised between tags or senders. Receives that wait for the same sender and
///          tag are served in the order in which they were posted.
/// Threads: every member may be called from any thread of the node at any time.
/// Loss:    when a peer dies or closes, messages that had arrived from it can still be received;
///          after that every operation on it throws PeerLost. A receive from any node reports each
///          loss once.
/// Cancel:  after `cancel`, every operation under way or begun later throws the given error.
///          Messages that had arrived are dropped.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual NodeId self() const = 0;

  /// The address at which other nodes reach this one; they pass it to `introduce`.
  virtual std::string address() const = 0;

  /// Sets the address of a peer. Operations on a peer that was never introduced and never dialled
  /// this node throw InternalError. Introducing a peer again at the same address changes nothing.
  virtual void introduce(NodeId peer, const std::string& address) = 0;

  /// Begins to send `payload`, which must stay unchanged until the transfer ends. Nothing is
  /// copied.
  virtual std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                               std::span<const std::byte> payload) = 0;

  /// Begins to receive the next message of `from` under `tag` straight into `into`, whose size must
  /// be that of the message. A receive begun before its message comes saves a copy.
  virtual std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag,
                                                  std::span<std::byte> into) = 0;

  /// Queues a small message and returns at once: never blocks, and never throws for a lost peer (a
  /// later wait for that peer reports the loss).
  virtual void post(NodeId to, Tag tag, std::vector<std::byte> payload) = 0;

  /// The next message under `tag` from `from`, or from any node when `from` is empty. Nothing if
  /// none has come by `deadline`.
  /// Errors: PeerLost, or the error given to `cancel`.
  virtual std::optional<Message> try_receive(std::optional<NodeId> from, Tag tag,
                                             TimePoint deadline) = 0;

  /// As `try_receive`. Errors: TimedOut at the deadline, and PeerTimedOut if `from` is given.
  Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) {
    auto message = try_receive(from, tag, deadline);
    if (!message) {
      throw_no_message(from);
    }
    return std::move(*message);
  }

  /// Gives up a peer that may hang: cuts the stream to it, so that each of the two nodes is lost to
  /// the other. Messages from the peer that no receive has taken may be lost, too.
  virtual void give_up(NodeId peer) = 0;

  /// Ends every operation of this node with `why`. Only the first call has an effect.
  virtual void cancel(std::exception_ptr why) noexcept = 0;

  /// Blocks until the network has taken all posted and sent messages, then closes every connection;
  /// at the deadline it closes them anyway. Peers see this node as lost from then on.
  virtual void close(TimePoint deadline) noexcept = 0;

  virtual Traffic traffic() const = 0;
  /// The part of `traffic` that went to `peer`; zero for an unknown node. Zero-copy bytes have no
  /// receiver.
  virtual Traffic traffic_to(NodeId peer) const = 0;

  /// How messages get to `peer`, for the user: "shared memory", or "10.0.0.2, TLS 1.3". Empty for
  /// an unknown node, and before there is a stream to it.
  virtual std::string path_to(NodeId peer) const = 0;

  /// Memory that the nodes of one host share; null if there is none.
  virtual SharedMemory* shared_memory() { return nullptr; }

  /// The allreduce of the underlying library; null if it has none or this node takes no part in it.
  virtual NativeAllreduce* native_allreduce() { return nullptr; }
};

/// Sends and waits.
inline void send(Transport& transport, NodeId to, Tag tag, std::span<const std::byte> payload,
                 TimePoint deadline) {
  transport.start_send(to, tag, payload)->wait(deadline);
}

/// Receives and waits.
inline void receive_into(Transport& transport, NodeId from, Tag tag, std::span<std::byte> into,
                         TimePoint deadline) {
  transport.start_receive(from, tag, into)->wait(deadline);
}

/// An allreduce by the library below a transport, such as MPI, which knows the network.
///
/// Members:   every node that has one calls every allreduce, in the same order.
/// Invariant: all nodes get the same bits. The MPI standard advises this; Open MPI and MPICH do it.
/// Thread:    one allreduce at a time.
class NativeAllreduce {
 public:
  virtual ~NativeAllreduce() = default;

  /// The number of nodes that take part.
  virtual std::uint32_t size() const = 0;

  /// Replaces `values` by their sum over all nodes. Shape: the same length on every node.
  ///
  /// Errors: TimedOut if not all nodes have called it: `values` are unchanged, and the caller may
  ///         call it again; the error that the transport was cancelled with, after which no node
  ///         can call it again. Once all nodes have called it, it runs until it or the job ends.
  virtual void allreduce(std::span<float> values, TimePoint deadline) = 0;
};

}  // namespace syncopate
