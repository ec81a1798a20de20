#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <memory>
#include <span>

#include "transport/shm/ring.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate::tcp {

/// Carries bytes to a peer and from it: over a socket, or for a peer on the same host through the
/// rings that both have mapped. Then the socket carries wake-up events, one byte of any value each,
/// and its end reports the end of the other process; the bytes that the ring still holds can be
/// read after that.
///
/// Threads: `write_some` under the outbox's mutex; the rest the engine.
class Stream {
 public:
  Stream(Socket socket, std::unique_ptr<shm::Duplex> rings)
      : socket_(std::move(socket)), rings_(std::move(rings)) {}

  Socket& socket() { return socket_; }
  bool has_rings() const { return rings_ != nullptr; }

  /// Writes the bytes that fit. `would_block`, where none do: then the socket becomes writable when
  /// some do, or readable with rings.
  std::size_t write_some(std::span<const asio::const_buffer> buffers, asio::error_code& error);

  using Space = std::array<asio::mutable_buffer, 2>;

  /// Reads the bytes that are there; `error` as of a socket. With rings, 0 means that all bytes are
  /// read. Where the rest of a message is coming, it waits a little, as the writer is about to copy
  /// it.
  std::size_t read_some(const Space& space, bool rest_is_coming, asio::error_code& error);

  /// With rings: takes the wake-up bytes from the socket. `read_some` reports the socket's end when
  ///             the ring is empty.
  void take_wakeups();
  /// Whether no wake-up event can come any more.
  bool wakeups_have_ended() const { return static_cast<bool>(ended_); }

 private:
  std::size_t write_to_ring(std::span<const asio::const_buffer> buffers);
  std::size_t read_from_ring(const Space& space);
  void wake_peer();

  Socket socket_;
  std::unique_ptr<shm::Duplex> rings_;
  asio::error_code ended_;  ///< how the socket ended, where it carries wake-up events
};

}  // namespace syncopate::tcp
