#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>

#include "transport/tcp/sockets.hpp"

namespace syncopate::tcp {

/// Accepts streams while it is open. Where the system refuses one (no descriptors left, a stream
/// that broke before), it warns once and goes on. Only the engine uses it.
class Listener {
 public:
  using Accepted = std::function<void(Socket)>;

  Listener(asio::io_context& io, Acceptor acceptor);

  void start(Accepted accepted);
  void close();
  Endpoint endpoint() const { return endpoint_; }

 private:
  void await_stream();
  void accept();
  void pause(const asio::error_code& error);

  asio::io_context& io_;
  Acceptor acceptor_;
  const Endpoint endpoint_;
  asio::steady_timer retry_;
  Accepted accepted_;
  bool warned_ = false;
};

}  // namespace syncopate::tcp
