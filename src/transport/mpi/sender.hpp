#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "transport/mpi/engine.hpp"
#include "transport/transport.hpp"

namespace syncopate::mpi {

/// What a send under way is told. Guarded by the turn.
struct SendHandle {
  bool done = false;  ///< the buffer is the caller's again
  std::exception_ptr error{};
};

struct QueuedMessage {
  Tag tag;
  std::vector<std::byte> owned;          ///< the payload, where it was posted
  std::span<const std::byte> payload;    ///< in `owned`, or lent
  std::shared_ptr<SendHandle> handle{};  ///< where it is lent

  std::size_t size() const { return packet_head_bytes + payload.size(); }
};

/// Messages on their way to one peer.
///
/// A small one leaves in a packet as long as the peer takes them; a large one is announced, and its pieces leave as
/// far as the peer has asked for them. So no bytes are with MPI, which would not give them back, that the peer does
/// not receive soon.
///
/// Thread:    with the engine lock.
/// Invariant: letters leave in order, each announced before the next one leaves.
class Sender {
 public:
  Sender(Engine& engine, Site here, Site there) : engine_(engine), here_(here), there_(there) {}

  /// Errors: what it was told to refuse with; letters with a handle are told so instead.
  void enqueue(QueuedMessage message);
  /// The peer listens: letters may leave.
  void open() { is_open_ = true; }
  /// Lets leave what may; whether anything did.
  bool work();

  void granted(std::uint32_t transfer, std::uint64_t upto);
  void dropped(std::uint32_t transfer);
  void credited(std::uint64_t bytes);

  /// Refuses what begins later with `why`. The first reason counts.
  void refuse(const std::exception_ptr& why);
  /// Refuses, and ends what is lent and has not begun to leave. Whether more is lent, which only the end of the stream
  /// can end.
  bool cancel(const std::exception_ptr& why);
  /// Ends every message, now and later, with `why`; one of which pieces are with MPI as soon as they have left.
  void break_off(const std::exception_ptr& why);

  bool is_empty() const { return queue_.empty() && announced_.empty(); }
  std::vector<Unfinished> unfinished() const;
  PacketHead head(PacketKind kind) const;
  Traffic traffic() const { return traffic_; }

 private:
  struct Announced {
    QueuedMessage message;
    std::uint32_t transfer = 0;
    std::uint64_t granted = 0;
    std::uint64_t sent = 0;
    std::uint32_t flying = 0;  ///< pieces that are with MPI
    std::exception_ptr broken{};
  };

  bool may_leave(const QueuedMessage& message) const;
  void leave(QueuedMessage message);
  void send_pieces(const std::shared_ptr<Announced>& announced);
  void finish_if_done(Announced& announced);
  void settle(const QueuedMessage& message, const std::exception_ptr& error);

  Engine& engine_;
  const Site here_;
  const Site there_;
  bool is_open_ = false;
  std::deque<QueuedMessage> queue_;  ///< that have not begun to leave
  std::map<std::uint32_t, std::shared_ptr<Announced>> announced_;
  std::size_t uncredited_ =
      0;  ///< bytes of small messages that the peer has not taken, as far as is known
  std::exception_ptr broken_;
  std::exception_ptr refusing_;
  Traffic traffic_;
};

}  // namespace syncopate::mpi
