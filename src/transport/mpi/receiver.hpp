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
/// Packets wait in line until the mailbox may take them. The pieces of a large message go straight to its place; they
/// are asked for, some ahead, when it is first in line.
///
/// Thread:    with the engine lock.
/// Invariant: what is asked for has a receive that waits for it.
class Receiver {
 public:
  Receiver(Engine& engine, mail::Mailbox& mailbox, NodeId peer, Site here, Site there)
      : engine_(engine), mailbox_(mailbox), peer_(peer), here_(here), there_(there) {}

  /// A small message, or the announcement of a large one.
  void arrived(const PacketHead& head, std::span<const std::byte> payload);
  /// Hands on what may be; whether anything was.
  bool work();

  /// The peer has said goodbye: of `unfinished` messages no more will come than has been sent.
  void end(const std::vector<Unfinished>& unfinished);
  /// Nothing more is handed on, and buffers are given back as soon as MPI lets go of them.
  void abandon();

  /// Whether all that will ever come has been handed on.
  bool is_drained() const { return line_.empty() && !coming_; }
  /// Whether MPI writes to nobody's memory any more.
  bool is_released() const { return !coming_; }

 private:
  struct Packet {
    PacketHead head;
    std::vector<std::byte> payload;
  };
  /// A large message that is first in line.
  struct Coming {
    mail::Arrival arrival;
    std::uint32_t transfer = 0;
    std::span<std::byte> place{};
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
  /// A piece that was asked for and then withdrawn, while the peer may have sent it.
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
  void say(PacketKind kind, std::uint32_t transfer, std::uint64_t bytes);

  Engine& engine_;
  mail::Mailbox& mailbox_;
  const NodeId peer_;
  const Site here_;
  const Site there_;
  std::deque<Packet> line_;
  std::optional<Coming> coming_;
  std::uint64_t taken_ = 0;  ///< bytes of small messages that the peer has not been told of
  std::optional<std::vector<Unfinished>> ended_;
  std::vector<Withdrawn> withdrawn_;
};

}  // namespace syncopate::mpi
