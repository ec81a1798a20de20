#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <memory>
#include <span>

#include "transport/shm/ring.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate::tcp {

/// What carries bytes to a peer and from it: a socket, or for a peer on the same host the rings that
/// both have mapped. Then the socket is the bell, one byte of any value to wake the other side, and its
/// end tells of the other's death, after which what the ring still holds can be read.
///
/// Threads: `write_some` under the outbox's mutex; the rest the engine.
class Stream {
 public:
  Stream(Socket socket, std::unique_ptr<shm::Duplex> rings)
      : socket_(std::move(socket)), rings_(std::move(rings)) {}

  Socket& socket() { return socket_; }
  bool has_rings() const { return rings_ != nullptr; }

  /// Writes what fits. `would_block`, where nothing does: then the socket becomes writable when more
  /// does, or with rings readable.
  std::size_t write_some(std::span<const asio::const_buffer> buffers, asio::error_code& error);

  using Space = std::array<asio::mutable_buffer, 2>;

  /// Reads what is there; `error` as of a socket. With rings, all has been read when nothing is. Where
  /// the rest of a message is coming, it is waited for a little, as the writer is about to copy it.
  std::size_t read_some(const Space& space, bool rest_is_coming, asio::error_code& error);

  /// With rings: takes the bytes of the bell from the socket. What it ends with, `read_some` tells when
  /// the ring is empty.
  void take_wakeups();
  /// Whether the bell will ring no more.
  bool wakeups_have_ended() const { return static_cast<bool>(ended_); }

 private:
  std::size_t write_to_ring(std::span<const asio::const_buffer> buffers);
  std::size_t read_from_ring(const Space& space);
  void wake_peer();

  Socket socket_;
  std::unique_ptr<shm::Duplex> rings_;
  asio::error_code ended_;  ///< what the socket ended with, where it is the bell
};

}  // namespace syncopate::tcp
