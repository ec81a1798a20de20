#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "transport/mpi/receiver.hpp"
#include "transport/mpi/sender.hpp"

namespace syncopate::mpi {

/// All that goes on between this node and one peer, from the handshake to both sides' goodbyes.
///
/// Goodbyes: each side says one, where the peer has been in contact, and then sends no more. Who gives the peer up
///           says it at once; who hears one before it has said its own answers with it. By what has left of unfinished
///           messages, as a goodbye tells, both withdraw what MPI will not fill, and nothing else.
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
  /// Null, where it is not lost.
  std::exception_ptr lost_by() const { return lost_by_; }

  /// The handshake has gone well.
  void open();
  void arrived(const PacketHead& head, std::span<const std::byte> payload);
  bool work();

  /// Nothing more will be sent.
  void finish();
  /// The peer is lost from now on: says so to it, too.
  void lose(const std::string& reason);
  void lose(const std::exception_ptr& why);

  /// Whether both sides have said goodbye, or have never met.
  bool has_ended() const { return !open_ || (sent_goodbye_ && received_goodbye_); }
  /// Whether everything that was sent has left.
  bool has_sent_all() const { return sender_.is_empty(); }
  /// Whether MPI holds no buffer of this stream any more.
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
