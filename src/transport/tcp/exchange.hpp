#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/tcp/sockets.hpp"
#include "wire/frame.hpp"

namespace syncopate::tcp {

/// A socket that writes and reads the single frames of a handshake until a deadline.
///
/// Owned by its handlers: it lives while something is under way. Of the engine alone.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  /// What follows when something has gone well. An Error that it throws counts as gone wrong.
  using Step = std::function<void(Exchange&)>;
  /// Called once, for the first thing that goes wrong.
  using Failed = std::function<void(Exchange&, std::exception_ptr)>;

  Exchange(Socket socket, std::chrono::milliseconds limit);

  /// Begins to watch the deadline.
  void start(Failed failed);
  void on_failure(Failed failed) { failed_ = std::move(failed); }

  void connect(const Endpoint& endpoint, Step next);
  void write(std::vector<std::byte> frame, Step next);
  /// Errors: ProtocolError, where no frame of a handshake comes.
  void read(Step next);
  /// Writes what the kernel takes at once, and does not look back.
  void write_last(const std::vector<std::byte>& frame);

  wire::FrameKind kind() const { return kind_; }                    ///< of the frame read last
  std::span<const std::byte> payload() const { return incoming_; }  ///< likewise

  /// Takes the socket out and ends the watch.
  Socket release();

  /// Breaks the stream and ends the watch; nobody is told.
  void abandon();

 private:
  auto then(Step next);
  void read_payload(Step next);
  void expire();
  void fail(std::exception_ptr why);

  Socket socket_;
  asio::steady_timer timer_;
  const std::chrono::milliseconds limit_;
  Failed failed_;
  bool expired_ = false;
  wire::FrameKind kind_{};
  wire::FrameHeaderBytes header_{};
  std::vector<std::byte> incoming_;
  std::vector<std::byte> outgoing_;
};

}  // namespace syncopate::tcp
