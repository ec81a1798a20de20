#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/mpi/engine.hpp"

namespace syncopate::mpi {

/// Messages on their way from one peer to the mailbox.
///
/// Packets wait in a queue until the mailbox takes them. When a large message is at the front of
/// the queue, the receiver requests its pieces, a few in advance, and they go straight to its
/// buffer.
///
/// Thread:    with the engine lock.
/// Invariant: every piece that the receiver asks for has a posted receive.
class Receiver {
 public:
  Receiver(Engine& engine, mail::Mailbox& mailbox, NodeId peer, Site here, Site there)
      : engine_(engine), mailbox_(mailbox), peer_(peer), here_(here), there_(there) {}

  /// A small message, or the announcement of a large one.
  void arrived(const PacketHead& head, std::span<const std::byte> payload);
  /// Passes messages on to the mailbox; returns true if anything moved.
  bool work();

  /// Handles the peer's goodbye: of `unfinished` messages, only the sent bytes will arrive.
  void end(const std::vector<Unfinished>& unfinished);
  /// Stops passing messages on, and returns buffers as soon as MPI has returned them.
  void abandon();

  /// True once the mailbox has all messages that will ever arrive.
  bool is_drained() const { return line_.empty() && !coming_; }
  /// True once MPI writes to no buffer any more.
  bool is_released() const { return !coming_; }

 private:
  struct Packet {
    PacketHead head;
    std::vector<std::byte> payload;
  };
  /// The large message at the front of the queue.
  struct Coming {
    mail::Arrival arrival;
    std::uint32_t transfer = 0;
    std::span<std::byte> buffer{};
    std::uint64_t granted = 0;
    std::uint64_t received = 0;
    bool abandoned = false;
    struct Piece {
      std::uint64_t begin;
      std::uint64_t size;
      OperationHandle operation;
    };
    std::deque<Piece> pieces{};  ///< that MPI may write to
  };
  /// A piece whose receive was cancelled although the peer may have sent it.
  struct Withdrawn {
    std::uint32_t transfer;
    std::uint64_t begin;
    std::uint64_t size;
  };

  void take(const Packet& packet);
  void begin(const PacketHead& head);
  bool go_on();
  void ask_for_more(Coming& coming);
  void receive_piece(Coming& coming);
  void piece_ended(std::uint64_t begin, const Calls::Done& done);
  void withdraw(Coming& coming, std::uint64_t from);
  void drain(const std::vector<Unfinished>& unfinished);
  void reply(PacketKind kind, std::uint32_t transfer, std::uint64_t bytes);

  Engine& engine_;
  mail::Mailbox& mailbox_;
  const NodeId peer_;
  const Site here_;
  const Site there_;
  std::deque<Packet> line_;
  std::optional<Coming> coming_;
  std::uint64_t taken_ = 0;  ///< bytes of small messages not yet credited to the peer
  std::optional<std::vector<Unfinished>> ended_;
  std::vector<Withdrawn> withdrawn_;
};

}  // namespace syncopate::mpi
