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

/// The outcome of a send under way. Guarded by the engine lock.
struct SendHandle {
  bool done = false;  ///< MPI has returned the buffer
  std::exception_ptr error{};
};

struct QueuedMessage {
  Tag tag;
  std::vector<std::byte> owned;          ///< the payload of a posted message
  std::span<const std::byte> payload;    ///< in `owned`, or the caller's buffer
  std::shared_ptr<SendHandle> handle{};  ///< set if `payload` is the caller's buffer

  std::size_t size() const { return packet_head_bytes + payload.size(); }
};

/// Messages on their way to one peer.
///
/// A small message leaves in one packet while the peer has credit for it. A large message is
/// announced, and its pieces leave as the peer requests them. MPI does not return a buffer early,
/// so it gets only bytes that the peer will receive soon.
///
/// Thread:    with the engine lock.
/// Invariant: messages leave in order, each announced before the next one leaves.
class Sender {
 public:
  Sender(Engine& engine, Site here, Site there) : engine_(engine), here_(here), there_(there) {}

  /// Errors: the reason given to `refuse`; a message with a handle stores it there instead.
  void enqueue(QueuedMessage message);
  /// Lets messages leave, because the handshake is complete.
  void open() { is_open_ = true; }
  /// Sends the messages that may leave; returns true if any did.
  bool work();

  void granted(std::uint32_t transfer, std::uint64_t upto);
  void dropped(std::uint32_t transfer);
  void credited(std::uint64_t bytes);

  /// Refuses messages from now on, with `why`. Only the first call has an effect.
  void refuse(const std::exception_ptr& why);
  /// Refuses messages, and ends sends from borrowed buffers that have not begun to leave. Returns
  /// true if other sends have begun to leave; only the end of the stream ends these.
  bool cancel(const std::exception_ptr& why);
  /// Ends every message, now and later, with `why`; a message of which MPI holds pieces ends when
  /// these have left.
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
    std::uint32_t flying = 0;  ///< pieces that MPI holds
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
  std::deque<QueuedMessage> queue_;  ///< messages that have not begun to leave
  std::map<std::uint32_t, std::shared_ptr<Announced>> announced_;
  std::size_t uncredited_ = 0;  ///< bytes of small messages that the peer has not credited
  std::exception_ptr broken_;
  std::exception_ptr refusing_;
  Traffic traffic_;
};

}  // namespace syncopate::mpi
