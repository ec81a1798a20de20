#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "wire/wire_frame.hpp"

/// Writes and reads the other end of a transport's stream without the transport's code.
namespace syncopate::contract {

/// Owns a file descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {
    if (number < 0) {
      throw std::runtime_error("the system gave no descriptor");
    }
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Returns a socket that is bound to a free port but does not listen yet.
inline Descriptor bound_socket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(0);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("cannot bind");
  }
  return socket;
}

inline std::string address_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

/// A stream on which a test writes and reads single frames and bytes.
class RawPeer {
 public:
  explicit RawPeer(Descriptor socket) : socket_(std::move(socket)) {}

  RawPeer(Descriptor socket, const std::string& to) : socket_(std::move(socket)) {
    const sockaddr_in address = loopback(std::stoi(to.substr(to.rfind(':') + 1)));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0) {
      throw std::runtime_error("cannot connect to " + to);
    }
  }

  explicit RawPeer(const std::string& to)
      : RawPeer(Descriptor(::socket(AF_INET, SOCK_STREAM, 0)), to) {}

  /// Writes all bytes, or stops when the other side breaks the stream.
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written <= 0) {
        return;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  /// Returns the next `count` bytes, or fewer if the stream ends.
  /// Errors: runtime_error if the other side neither writes nor closes for two minutes.
  std::vector<std::byte> read(std::size_t count) {
    std::vector<std::byte> bytes(count);
    std::size_t have = 0;
    while (have < count) {
      pollfd waiting{socket_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 120'000) == 0) {
        throw std::runtime_error("the other side neither writes nor closes");
      }
      const ssize_t got = ::recv(socket_.get(), bytes.data() + have, count - have, 0);
      if (got <= 0) {
        break;
      }
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

  /// Ends the stream for the other side, even if another process has a copy of the descriptor.
  void finish_writing() { ::shutdown(socket_.get(), SHUT_WR); }

  /// Returns true if bytes or the end of the stream have arrived.
  bool has_bytes() const {
    pollfd waiting{socket_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, 0) > 0;
  }

  bool is_at_end() { return read(1).empty(); }

  /// Reads until the stream ends. Errors: those of `read`.
  void read_to_end() {
    while (!is_at_end()) {
    }
  }

  /// Sends `hello` and returns the answer. Errors: ConfigError if the other side refuses it.
  wire::Welcome greet(const wire::Hello& hello) {
    write(wire::encode_frame(hello));
    return read_answer();
  }

  wire::Welcome read_answer() {
    const std::vector<std::byte> head = read(wire::frame_header_bytes);
    if (head.size() < wire::frame_header_bytes) {
      throw std::runtime_error("the other side closed the stream without an answer");
    }
    const wire::FrameHeader header = wire::decode_frame_header(
        std::span(head).first<wire::frame_header_bytes>(), wire::handshake_limit);
    return wire::decode_answer(header.kind, read(header.length));
  }

 private:
  Descriptor socket_;
};

}  // namespace syncopate::contract
