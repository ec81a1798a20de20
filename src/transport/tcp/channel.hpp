#pragma once

#include <memory>
#include <span>
#include <utility>

#include "transport/tcp/sockets.hpp"
#include "transport/tcp/tls.hpp"

namespace syncopate::tcp {

/// A connected socket, encrypted or not: what passes through it, and its end.
class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  TlsSession* tls() const { return tls_.get(); }

  /// Encrypts what passes from now on.
  void encrypt(const Tls& tls, Tls::Side side) {
    tls_ = tls.session(socket_.native_handle(), side);
  }
  /// The socket itself carries no more than wake-up events from now on.
  void stop_encrypting() { tls_.reset(); }

  /// As of the socket. A closed one is an error: its descriptor may be another's by now, and a
  /// session would use it.
  std::size_t read_some(std::span<const asio::mutable_buffer> space, asio::error_code& error) {
    return is_encrypted_and_open() ? tls_->read_some(space, error)
                                   : socket_.read_some(space, error);
  }
  std::size_t write_some(std::span<const asio::const_buffer> buffers, asio::error_code& error) {
    return is_encrypted_and_open() ? tls_->write_some(buffers, error)
                                   : socket_.write_some(buffers, error);
  }

  /// Tells the other side that nothing more follows.
  void finish() {
    if (is_encrypted_and_open()) {
      tls_->finish();
    }
    asio::error_code ignored;  // reading reports a stream that broke meanwhile
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

 private:
  bool is_encrypted_and_open() const { return tls_ && socket_.is_open(); }

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace syncopate::tcp
