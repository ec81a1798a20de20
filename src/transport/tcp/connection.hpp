#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/mail/mailbox.hpp"
#include "transport/tcp/frame_reader.hpp"
#include "transport/tcp/outbox.hpp"
#include "transport/tcp/tcp_stream.hpp"

namespace syncopate::tcp {

/// One stream to a peer, past its handshake: moves bytes between it, the peer's outbox and the
/// mailbox. Only the engine uses it.
///
/// The connection notices the end of a stream when it reads, so that bytes sent before are received
/// first.
///
/// The owner drops the connection when it is lost; handlers own it, too, while an operation is
/// under way. A caller of any member owns it during the call.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    NodeId peer;
    PayloadLimits limits;
    std::function<void(const std::string& reason)> lost;  ///< called once, when the stream ended
  };

  /// The mailbox and the outbox outlive the engine.
  Connection(Stream stream, mail::Mailbox& mailbox, Outbox& outbox, Options options);

  void start();
  /// Continues to read after `Mailbox::may_read` had held this peer back.
  void resume() { read(); }
  void flush();
  /// Tells the peer that this node sends no more.
  void finish_sending();
  /// Breaks the stream. The loss is reported once the bytes that had arrived are read.
  void cut();
  void lose(const std::string& reason);

 private:
  void await_readable();
  void ready();
  void read();
  bool read_some(asio::error_code& error);
  void await_more();
  void hold_back();

  Stream stream_;
  mail::Mailbox& mailbox_;
  Outbox& outbox_;
  Options options_;
  FrameReader reader_;
  bool waiting_ = false;  ///< for the socket to become readable
  bool blocked_ = false;  ///< the outgoing ring was full
  bool lost_ = false;
};

}  // namespace syncopate::tcp
