#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "transport/mpi/receiver.hpp"
#include "transport/mpi/sender.hpp"

namespace syncopate::mpi {

/// The traffic between this node and one peer, from the handshake to the goodbyes of both.
///
/// Goodbyes: after a complete handshake, each side sends one goodbye as its last packet. A node
///           that gives the peer up sends it at once; a node that receives a goodbye before it has
///           sent its own replies with its own. A goodbye lists how much of each unfinished message
///           has left, so that both sides cancel exactly the receives that MPI will not fill.
///
/// Thread:   with the engine lock.
class Stream {
 public:
  struct Ends {
    NodeId peer;
    Site here;
    Site there;
  };

  Stream(Engine& engine, mail::Mailbox& mailbox, const Ends& ends)
      : engine_(engine),
        mailbox_(mailbox),
        ends_(ends),
        sender_(engine, ends.here, ends.there),
        receiver_(engine, mailbox, ends.peer, ends.here, ends.there) {}

  NodeId peer() const { return ends_.peer; }
  const Site& there() const { return ends_.there; }
  Sender& sender() { return sender_; }
  const Sender& sender() const { return sender_; }
  bool is_open() const { return open_; }
  /// The reason why the peer is lost; null if it is not lost.
  std::exception_ptr lost_by() const { return lost_by_; }

  /// Call this when the handshake is complete.
  void open();
  void arrived(const PacketHead& head, std::span<const std::byte> payload);
  bool work();

  /// Sends nothing more.
  void finish();
  /// Declares the peer lost, and says goodbye to it.
  void lose(const std::string& reason);
  void lose(const std::exception_ptr& why);

  /// True if both sides have sent a goodbye, or never completed a handshake.
  bool has_ended() const { return !open_ || (sent_goodbye_ && received_goodbye_); }
  /// True if everything that was sent has left.
  bool has_sent_all() const { return sender_.is_empty(); }
  /// True if MPI holds no buffer of this stream any more.
  bool is_released() const { return sender_.is_empty() && receiver_.is_released(); }

 private:
  void send_goodbye();
  void receive_goodbye(std::span<const std::byte> payload);
  std::exception_ptr loss(const std::string& reason) const;

  Engine& engine_;
  mail::Mailbox& mailbox_;
  const Ends ends_;
  Sender sender_;
  Receiver receiver_;
  bool open_ = false;
  bool sent_goodbye_ = false;
  bool received_goodbye_ = false;
  std::exception_ptr lost_by_;
};

}  // namespace syncopate::mpi
