#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>

#include "transport/tcp/sockets.hpp"

namespace syncopate::tcp {

/// Accepts streams while it is open. If the system refuses one (no descriptor is left, or the
/// stream broke before), the listener warns once and continues; if no descriptor is left, it first
/// calls `FreeDescriptor`. Only the engine uses it.
class Listener {
 public:
  using Accepted = std::function<void(Socket)>;
  /// Closes a descriptor that matters less than a new stream. Returns false if there is none.
  using FreeDescriptor = std::function<bool()>;

  Listener(asio::io_context& io, Acceptor acceptor);

  void start(Accepted accepted, FreeDescriptor free_descriptor);
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
  FreeDescriptor free_descriptor_;
  bool warned_ = false;
};

}  // namespace syncopate::tcp
