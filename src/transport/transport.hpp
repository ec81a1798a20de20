#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// A send or a receive under way in a buffer that the caller lends until the operation ends.
///
/// Destroying it withdraws a receive that has not begun to arrive, and otherwise waits until the
/// engine has let go of the buffer, which the loss of the peer and `cancel` make happen at once.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Blocks until the buffer is the caller's again: a receive has filled it, a send has read it.
  ///
  /// Errors: TimedOut (a receive may be waited for again; after a send timed out the stream to that
  ///         peer is cut and every operation on it throws PeerLost), PeerLost, ProtocolError (the
  ///         message that came is not as long as the buffer), or what `cancel` was given.
  virtual void wait(TimePoint deadline) = 0;
};

/// Bytes handed over by this node since its start.
struct Traffic {
  std::uint64_t bytes_sent = 0;  ///< headers included, counted when handed to the transport
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_zero_copy = 0;  ///< in shared memory, without a message
};

/// Tagged messages between the numbered nodes of one job.
///
/// Order:   messages of one sender under one tag are received in the order in which they were sent;
///          nothing is promised between tags or senders. Receives that wait for the same sender and
///          tag are served in the order in which they were posted.
/// Threads: every member may be called from any thread of the node at any time.
/// Loss:    when a peer dies or closes, what had arrived from it can still be received; after that
///          every operation on it throws PeerLost. A receive from anyone reports each loss once.
/// Cancel:  after `cancel`, every operation under way or begun later throws the given error.
///          What had arrived is dropped.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual NodeId self() const = 0;

  /// Where others reach this node, for `introduce` on theirs.
  virtual std::string address() const = 0;

  /// Tells where a peer is reached. Operations on a peer that was never introduced and never made
  /// contact throw InternalError. Introducing a peer again at the same address changes nothing.
  virtual void introduce(NodeId peer, const std::string& address) = 0;

  /// Begins to send `payload`, which must stay unchanged until the transfer ends. Nothing is copied.
  virtual std::unique_ptr<Transfer> start_send(NodeId to, Tag tag,
                                               std::span<const std::byte> payload) = 0;

  /// Begins to receive the next message of `from` under `tag` straight into `into`, whose size must
  /// be that of the message. A receive begun before its message comes saves a copy.
  virtual std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag,
                                                  std::span<std::byte> into) = 0;

  /// Hands over a small message and returns at once: never blocks, and never throws for a lost peer
  /// (the loss shows where something is awaited from it).
  virtual void post(NodeId to, Tag tag, std::vector<std::byte> payload) = 0;

  /// The next message under `tag` from `from`, or from anyone when `from` is empty.
  /// Errors: TimedOut, PeerLost, or what `cancel` was given.
  virtual Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) = 0;

  /// Gives up a peer that may hang: the stream to it is cut, and it is lost, as this node is to it.
  /// What it sent and nobody has received may be lost, too.
  virtual void give_up(NodeId peer) = 0;

  /// Ends every operation of this node with `why`. The first call counts.
  virtual void cancel(std::exception_ptr why) noexcept = 0;

  /// Blocks until what was posted and sent has been handed to the network, then closes every
  /// connection; at the deadline it closes them anyway. Peers see this node as lost from then on.
  virtual void close(TimePoint deadline) noexcept = 0;

  virtual Traffic traffic() const = 0;
  /// Of that, what was sent to `peer`; nothing for a node without contact. Bytes in shared memory have no receiver.
  virtual Traffic traffic_to(NodeId peer) const = 0;

  /// Memory that the nodes of one host lend each other; null where there is none.
  virtual SharedMemory* shared_memory() { return nullptr; }

  /// Sums that the library below makes; null where there is none, or this node takes no part in them.
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

/// Sums that the library below a transport makes itself: an MPI knows its network.
///
/// Takes part: every node that has one, all of them in every sum, in the same order.
/// Invariant:  that all have the same bits is the library's promise, which MPI advises its makers to keep and
///             Open MPI and MPICH do.
/// Thread:     one sum at a time.
class NativeAllreduce {
 public:
  virtual ~NativeAllreduce() = default;

  /// How many nodes take part.
  virtual std::uint32_t size() const = 0;

  /// Replaces `values` by their sum over all who take part. Shape: as long on every node.
  ///
  /// Errors: TimedOut, where not all have come: `values` are untouched, and it may be called again; what the transport
  ///         was cancelled with, which nobody can sum after. From the moment at which all have come it goes on to its
  ///         end, or to that of the job.
  virtual void allreduce(std::span<float> values, TimePoint deadline) = 0;
};

}  // namespace syncopate
