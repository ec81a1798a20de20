#include "transport/tcp/listener.hpp"

#include <asio/error.hpp>
#include <chrono>
#include <utility>

#include "base/log.hpp"

namespace syncopate::tcp {
namespace {

/// Pause before the next attempt if the system has no descriptor or memory for a stream.
constexpr std::chrono::milliseconds pause_after_error{100};

}  // namespace

Listener::Listener(asio::io_context& io, Acceptor acceptor)
    : io_(io), acceptor_(std::move(acceptor)), endpoint_(acceptor_.local_endpoint()), retry_(io) {}

void Listener::start(Accepted accepted, FreeDescriptor free_descriptor) {
  accepted_ = std::move(accepted);
  free_descriptor_ = std::move(free_descriptor);
  await_stream();
}

void Listener::close() {
  asio::error_code ignored;  // the descriptor is gone in any case
  acceptor_.close(ignored);
  retry_.cancel();
}

void Listener::await_stream() {
  acceptor_.async_wait(Acceptor::wait_read, [this](const asio::error_code& error) {
    if (!error) {
      accept();
    }
  });
}

void Listener::accept() {
  asio::error_code error;
  Socket socket = accept_from(acceptor_, io_, error);
  while (is_lack_of_descriptors(error) && free_descriptor_()) {
    socket = accept_from(acceptor_, io_, error);
  }
  if (error && error != asio::error::would_block) {
    return pause(error);
  }
  if (!error) {
    warned_ = false;
    accepted_(std::move(socket));
  }
  await_stream();
}

void Listener::pause(const asio::error_code& error) {
  if (!std::exchange(warned_, true)) {
    log::warn("cannot accept a connection at {}: {}{}; trying again", to_string(endpoint_),
              error.message(),
              is_lack_of_descriptors(error) ? ", raise the limit on them (ulimit -n)" : "");
  }
  retry_.expires_after(pause_after_error);
  retry_.async_wait([this](const asio::error_code& cancelled) {
    if (!cancelled) {
      accept();
    }
  });
}

}  // namespace syncopate::tcp
