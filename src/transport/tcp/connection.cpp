#include "transport/tcp/connection.hpp"

#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

namespace syncopate::tcp {
namespace {

/// Reads in a row, before other streams of the node have their turn.
constexpr int reads_in_a_row = 8;

}  // namespace

Connection::Connection(Stream stream, mail::Mailbox& mailbox, Outbox& outbox, Options options)
    : stream_(std::move(stream)),
      mailbox_(mailbox),
      outbox_(outbox),
      options_(std::move(options)),
      reader_(options_.peer, mailbox, options_.message_limit) {
  set_no_delay(stream_.socket());
  if (is_on_this_host(stream_.socket())) {
    set_short_buffers(stream_.socket());
  }
}

void Connection::start() {
  read();
  if (outbox_.attach(stream_) != Outbox::Progress::idle) {
    flush();
  }
}

void Connection::flush() {
  const Outbox::Progress progress = outbox_.write();
  blocked_ = progress == Outbox::Progress::blocked && stream_.has_rings();
  switch (progress) {
    case Outbox::Progress::idle: return;
    case Outbox::Progress::more:
      asio::post(stream_.socket().get_executor(), [this] { flush(); });
      return;
    case Outbox::Progress::blocked:
      if (stream_.has_rings()) {
        return;  // the bell says when there is room
      }
      stream_.socket().async_wait(Socket::wait_write, [this](const asio::error_code& error) {
        if (!error) {
          flush();
        }
      });
      return;
  }
}

void Connection::finish_sending() {
  asio::error_code ignored;  // a stream that broke meanwhile says so where it is read
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
}

void Connection::cut() {
  asio::error_code ignored;  // as above
  stream_.socket().shutdown(Socket::shutdown_both, ignored);
}

void Connection::lose(const std::string& reason) {
  if (lost_) {
    return;
  }
  lost_ = true;
  outbox_.detach();
  asio::error_code ignored;  // the descriptor is gone in any case
  stream_.socket().close(ignored);
  options_.lost(reason);
}

void Connection::await_readable() {
  if (std::exchange(waiting_, true)) {
    return;
  }
  stream_.socket().async_wait(Socket::wait_read, [this](const asio::error_code& error) {
    waiting_ = false;
    if (!error) {
      ready();
    }
  });
}

/// A bell says that there is something to read, or room to write.
void Connection::ready() {
  if (lost_) {
    return;
  }
  if (stream_.has_rings()) {
    stream_.take_wakeups();
    if (blocked_) {
      flush();
    }
  }
  read();
}

void Connection::read() {
  if (lost_) {
    return;
  }
  for (int turn = 0; turn < reads_in_a_row; ++turn) {
    if (!reader_.is_filling_borrowed_buffer() && !mailbox_.may_read(options_.peer)) {
      return hold_back();
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
      return await_more();
    }
  }
  asio::post(stream_.socket().get_executor(), [this] { read(); });
}

/// True where the stream had as much as there was space for, so that it may have more; a ring that ran
/// empty says so.
bool Connection::read_some(asio::error_code& error) {
  const auto space = reader_.space();
  const std::size_t bytes = stream_.read_some(space, reader_.is_in_message(), error);
  reader_.received(bytes);
  return stream_.has_rings() ? bytes > 0 : bytes == asio::buffer_size(space);
}

/// To read means to take the bytes of the bell, of which one may have said that there is room to write.
void Connection::await_more() {
  if (blocked_) {
    flush();
  }
  await_readable();
}

/// Nothing more is read for now; what is to be written goes on.
void Connection::hold_back() {
  if (stream_.has_rings() && !stream_.wakeups_have_ended()) {
    await_more();
  }
}

}  // namespace syncopate::tcp
