#include "transport/tcp/connection.hpp"

#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

namespace syncopate::tcp {
namespace {

/// Reads in a row, before other streams of the node have their turn.
constexpr int reads_in_a_row = 8;

}  // namespace

Connection::Connection(Socket socket, Mailbox& mailbox, Outbox& outbox, Options options)
    : socket_(std::move(socket)),
      mailbox_(mailbox),
      outbox_(outbox),
      options_(std::move(options)),
      reader_(options_.peer, mailbox, options_.message_limit) {
  set_no_delay(socket_);
}

void Connection::start() {
  await_readable();
  if (outbox_.attach(socket_) != Outbox::Progress::idle) {
    flush();
  }
}

void Connection::flush() {
  switch (outbox_.write()) {
    case Outbox::Progress::idle: return;
    case Outbox::Progress::more: asio::post(socket_.get_executor(), [this] { flush(); }); return;
    case Outbox::Progress::blocked:
      socket_.async_wait(Socket::wait_write, [this](const asio::error_code& error) {
        if (!error) {
          flush();
        }
      });
      return;
  }
}

void Connection::finish_sending() {
  asio::error_code ignored;  // a stream that broke meanwhile says so where it is read
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Connection::cut() {
  asio::error_code ignored;  // as above
  socket_.shutdown(Socket::shutdown_both, ignored);
}

void Connection::lose(const std::string& reason) {
  if (lost_) {
    return;
  }
  lost_ = true;
  outbox_.detach();
  asio::error_code ignored;  // the descriptor is gone in any case
  socket_.close(ignored);
  options_.lost(reason);
}

void Connection::await_readable() {
  socket_.async_wait(Socket::wait_read, [this](const asio::error_code& error) {
    if (!error) {
      read();
    }
  });
}

void Connection::read() {
  if (lost_) {
    return;
  }
  for (int turn = 0; turn < reads_in_a_row; ++turn) {
    if (!reader_.is_filling_lent_buffer() && !mailbox_.may_read(options_.peer)) {
      return;
    }
    asio::error_code error;
    bool more = false;
    try {
      more = read_some(error);
    } catch (const std::exception& damage) {
      return lose(damage.what());
    }
    if (error && error != asio::error::would_block) {
      return lose(error == asio::error::eof ? "it closed the connection" : error.message());
    }
    if (!more) {
      return await_readable();
    }
  }
  asio::post(socket_.get_executor(), [this] { read(); });
}

/// True where the kernel had as much as there was space for, so that it may have more.
bool Connection::read_some(asio::error_code& error) {
  const auto space = reader_.space();
  const std::size_t bytes = socket_.read_some(space, error);
  reader_.received(bytes);
  return bytes == asio::buffer_size(space);
}

}  // namespace syncopate::tcp
