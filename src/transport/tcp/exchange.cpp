#include "transport/tcp/exchange.hpp"

#include <fmt/format.h>

#include <asio/read.hpp>
#include <asio/write.hpp>
#include <utility>

#include "base/errors.hpp"
#include "wire/handshake.hpp"

namespace syncopate::tcp {

Exchange::Exchange(Socket socket, std::chrono::milliseconds limit)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), limit_(limit) {}

void Exchange::start(Failed failed) {
  failed_ = std::move(failed);
  timer_.expires_after(limit_);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
    if (!cancelled) {
      self->expire();
    }
  });
}

auto Exchange::then(Step next) {
  return [self = shared_from_this(), next = std::move(next)](const asio::error_code& error,
                                                             std::size_t = 0) {
    if (error) {
      return self->fail(std::make_exception_ptr(asio::system_error(error)));
    }
    try {
      next(*self);
    } catch (const Error&) {
      if (!self->failed_) {
        throw;  // the handshake is over: this is not the stranger's doing
      }
      self->fail(std::current_exception());
    }
  };
}

void Exchange::connect(const Endpoint& endpoint, Step next) {
  const auto handler = then(std::move(next));
  socket_.async_connect(endpoint, [this, endpoint, handler](asio::error_code error) {
    // Where nobody listens, the system may connect a socket of that port to itself.
    asio::error_code unknown;
    if (!error && socket_.local_endpoint(unknown) == endpoint) {
      error = asio::error::connection_refused;
    }
    handler(error);
  });
}

void Exchange::write(std::vector<std::byte> frame, Step next) {
  outgoing_ = std::move(frame);
  asio::async_write(socket_, asio::buffer(outgoing_), then(std::move(next)));
}

void Exchange::read(Step next) {
  asio::async_read(socket_, asio::buffer(header_),
                   then([next = std::move(next)](Exchange& self) { self.read_payload(next); }));
}

void Exchange::read_payload(Step next) {
  const wire::FrameHeader header = wire::decode_frame_header(header_, wire::handshake_limit);
  kind_ = header.kind;
  incoming_.resize(header.length);
  asio::async_read(socket_, asio::buffer(incoming_), then(std::move(next)));
}

void Exchange::write_last(const std::vector<std::byte>& frame) {
  asio::error_code ignored;  // who is turned away may have gone already
  socket_.write_some(asio::buffer(frame), ignored);
}

Socket Exchange::release() {
  timer_.cancel();
  failed_ = nullptr;
  return std::move(socket_);
}

void Exchange::abandon() {
  timer_.cancel();
  failed_ = nullptr;
  asio::error_code ignored;  // the descriptor is gone in any case
  socket_.close(ignored);
}

void Exchange::expire() {
  expired_ = true;
  asio::error_code ignored;  // the descriptor is gone in any case
  socket_.close(ignored);
}

void Exchange::fail(std::exception_ptr why) {
  timer_.cancel();
  if (expired_) {
    why = std::make_exception_ptr(TimedOut(
        fmt::format("expected a handshake within {} ms, it did not come", limit_.count())));
  }
  if (failed_) {
    std::exchange(failed_, nullptr)(*this, why);
  }
}

}  // namespace syncopate::tcp
