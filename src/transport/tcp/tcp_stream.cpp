#include "transport/tcp/tcp_stream.hpp"

#include <sys/socket.h>

#include <utility>

#include "transport/shm/byte_ring.hpp"

namespace syncopate::tcp {
namespace {

/// Time for which a side spins in the middle of a message: most likely the other side is copying,
/// and a wake-up takes as long as the other side needs to fill the ring. It does not yield the
/// core: the system would run both sides on one core, one after the other, and leave another core
/// idle.
constexpr Duration spinning = std::chrono::microseconds(30);

}  // namespace

/// Wake-up events say nothing, so they are not encrypted.
Stream::Stream(Channel channel, std::unique_ptr<shm::Duplex> rings)
    : channel_(std::move(channel)), rings_(std::move(rings)) {
  if (rings_) {
    channel_.stop_encrypting();
  } else if (channel_.tls() != nullptr) {
    channel_.tls()->read_ahead();
  }
}

std::size_t Stream::write_some(std::span<const asio::const_buffer> buffers,
                               asio::error_code& error) {
  if (!rings_) {
    return channel_.write_some(buffers, error);
  }
  std::size_t written = 0;
  if (shm::spin([&] { return (written = write_to_ring(buffers)) > 0; }, spinning)) {
    return written;
  }
  while (!rings_->outgoing().await_room()) {
    if (written = write_to_ring(buffers); written > 0) {
      return written;
    }
  }
  error = asio::error::would_block;
  return 0;
}

std::size_t Stream::write_to_ring(std::span<const asio::const_buffer> buffers) {
  shm::Ring& ring = rings_->outgoing();
  std::size_t written = 0;
  for (const asio::const_buffer& buffer : buffers) {
    const std::size_t part =
        ring.write({static_cast<const std::byte*>(buffer.data()), buffer.size()});
    written += part;
    if (part < buffer.size()) {
      break;
    }
  }
  if (written > 0 && ring.must_wake_reader()) {
    wake_peer();
  }
  return written;
}

std::size_t Stream::read_some(const Space& space, bool rest_is_coming, asio::error_code& error) {
  if (!rings_) {
    return channel_.read_some(space, error);
  }
  std::size_t bytes = 0;
  const auto read = [&] { return (bytes = read_from_ring(space)) > 0; };
  if (read() || (rest_is_coming && !ended_ && shm::spin(read, spinning))) {
    return bytes;
  }
  take_wakeups();  // before the last read: the peer wrote its bytes before it ended the stream
  while (!read()) {
    if (ended_ || rings_->incoming().await_bytes()) {
      error = ended_ ? ended_ : asio::error_code(asio::error::would_block);
      return 0;
    }
  }
  return bytes;
}

std::size_t Stream::read_from_ring(const Space& space) {
  shm::Ring& ring = rings_->incoming();
  std::size_t bytes = 0;
  for (const asio::mutable_buffer& buffer : space) {
    const std::size_t part = ring.read({static_cast<std::byte*>(buffer.data()), buffer.size()});
    bytes += part;
    if (part < buffer.size()) {
      break;
    }
  }
  if (bytes > 0 && ring.must_wake_writer()) {
    wake_peer();
  }
  return bytes;
}

void Stream::take_wakeups() {
  std::array<std::byte, 256> wakeups;
  while (!ended_) {
    asio::error_code error;
    socket().read_some(asio::buffer(wakeups), error);
    if (error == asio::error::would_block) {
      return;
    }
    ended_ = error;
  }
}

/// A failed send needs no handling: the peer has gone, or its socket is full of wake-up bytes.
void Stream::wake_peer() {
  ::send(socket().native_handle(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace syncopate::tcp
