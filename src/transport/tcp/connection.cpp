#include "transport/tcp/connection.hpp"

#include <asio/error.hpp>
#include <asio/post.hpp>
#include <utility>

namespace syncopate::tcp {
namespace {

/// Number of reads in a row before the engine serves other streams of the node.
constexpr int reads_in_a_row = 8;

}  // namespace

Connection::Connection(Stream stream, mail::Mailbox& mailbox, Outbox& outbox, Options options)
    : stream_(std::move(stream)),
      mailbox_(mailbox),
      outbox_(outbox),
      options_(std::move(options)),
      reader_(options_.peer, mailbox, options_.limits) {
  set_no_delay(stream_.socket());
  if (is_on_this_host(stream_.socket())) {
    set_short_buffers(stream_.socket());
  } else {
    expect_signs_of_life(stream_.socket());
  }
}

void Connection::start() {
  read();
  if (lost_) {
    return;
  }
  if (outbox_.attach(stream_) != Outbox::WriteResult::idle) {
    flush();
  }
}

void Connection::flush() {
  const Outbox::WriteResult result = outbox_.write();
  blocked_ = result == Outbox::WriteResult::blocked && stream_.has_rings();
  switch (result) {
    case Outbox::WriteResult::idle: return;
    case Outbox::WriteResult::more:
      asio::post(stream_.socket().get_executor(), [self = shared_from_this()] { self->flush(); });
      return;
    case Outbox::WriteResult::blocked:
      if (stream_.has_rings()) {
        return;  // a wake-up event reports room
      }
      stream_.socket().async_wait(Socket::wait_write,
                                  [self = shared_from_this()](const asio::error_code& error) {
                                    if (!error) {
                                      self->flush();
                                    }
                                  });
      return;
  }
}

void Connection::finish_sending() {
  stream_.finish();
}

void Connection::cut() {
  asio::error_code ignored;  // reading reports a stream that broke meanwhile
  stream_.socket().shutdown(Socket::shutdown_both, ignored);
}

void Connection::lose(const std::string& reason) {
  if (lost_) {
    return;
  }
  lost_ = true;
  outbox_.detach();
  end_stream(stream_.socket());
  options_.lost(reason);
}

void Connection::await_readable() {
  if (std::exchange(waiting_, true)) {
    return;
  }
  stream_.socket().async_wait(Socket::wait_read,
                              [self = shared_from_this()](const asio::error_code& error) {
                                self->waiting_ = false;
                                if (!error) {
                                  self->ready();
                                }
                              });
}

/// Handles a readable socket: with rings, this is a wake-up event for bytes to read or room to
/// write.
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
  for (int reads = 0; reads < reads_in_a_row; ++reads) {
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
  asio::post(stream_.socket().get_executor(), [self = shared_from_this()] { self->read(); });
}

/// Returns true if the stream may have more bytes: a socket has filled the space; a ring, or an
/// encrypted stream, has returned any.
bool Connection::read_some(asio::error_code& error) {
  const auto space = reader_.space();
  const std::size_t bytes = stream_.read_some(space, reader_.is_in_message(), error);
  reader_.received(bytes);
  return stream_.must_be_read_empty() ? bytes > 0 : bytes == asio::buffer_size(space);
}

/// Also flushes: reading takes the wake-up bytes from the socket, and one of them may have reported
/// room to write.
void Connection::await_more() {
  if (blocked_) {
    flush();
  }
  await_readable();
}

/// Stops reading for now; writing continues.
void Connection::hold_back() {
  if (stream_.has_rings() && !stream_.wakeups_have_ended()) {
    await_more();
  }
}

}  // namespace syncopate::tcp
