#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <memory>
#include <span>

#include "transport/shm/byte_ring.hpp"
#include "transport/tcp/channel.hpp"

namespace syncopate::tcp {

/// Carries bytes to and from a peer: over a socket or, for a peer on the same host, through rings
/// that both processes have mapped. With rings, the socket carries wake-up events, one byte of any
/// value each, and its end reports the end of the other process; the bytes that the ring still
/// holds can be read after that.
///
/// Threads: `write_some` under the outbox's mutex; only the engine calls the rest.
class Stream {
 public:
  Stream(Channel channel, std::unique_ptr<shm::Duplex> rings);

  Socket& socket() { return channel_.socket(); }
  bool has_rings() const { return rings_ != nullptr; }
  /// True if `read_some` returns bytes as long as there are any, not only as many as fit.
  bool must_be_read_empty() const { return has_rings() || channel_.tls() != nullptr; }
  /// The bytes that come next and have been accepted, but that `write_some` has not counted yet.
  std::size_t held_bytes() const {
    return channel_.tls() != nullptr ? channel_.tls()->held_bytes() : 0;
  }
  /// Tells the peer that nothing more follows.
  void finish() { channel_.finish(); }

  /// Writes the bytes that fit. `error` is `would_block` if none fit: the socket becomes writable
  /// (with rings: readable) when there is room.
  std::size_t write_some(std::span<const asio::const_buffer> buffers, asio::error_code& error);

  using Space = std::array<asio::mutable_buffer, 2>;

  /// Reads the available bytes; `error` is as for a socket. With rings, 0 means that all bytes are
  /// read. If `rest_is_coming`, waits a little for the rest of a message, because the writer is
  /// about to copy it.
  std::size_t read_some(const Space& space, bool rest_is_coming, asio::error_code& error);

  /// With rings: takes the wake-up bytes from the socket. `read_some` reports the socket's end when
  ///             the ring is empty.
  void take_wakeups();
  /// True once no wake-up event can arrive any more.
  bool wakeups_have_ended() const { return static_cast<bool>(ended_); }

 private:
  std::size_t write_to_ring(std::span<const asio::const_buffer> buffers);
  std::size_t read_from_ring(const Space& space);
  void wake_peer();

  Channel channel_;
  std::unique_ptr<shm::Duplex> rings_;
  asio::error_code ended_;  ///< with rings: how the socket ended
};

}  // namespace syncopate::tcp
