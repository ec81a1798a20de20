#include "transport/tcp/tcp_handshake.hpp"

#include <fmt/format.h>

#include <array>
#include <asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Pause between attempts to reach a coordinator that is not up yet.
constexpr Milliseconds retry_interval{20};

std::string reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const asio::system_error& broken) {
    return fmt::format("it went away during the handshake ({})", broken.code().message());
  } catch (const std::exception& other) {
    return other.what();
  }
}

/// True if the stream broke or was too slow, rather than what came over it was wrong.
bool is_of_stream(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const asio::system_error&) {
    return true;
  } catch (const TimedOut&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Milliseconds delay_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const WrongKey& wrong) {
    return wrong.delay();
  } catch (const std::exception&) {
    return Milliseconds(0);
  }
}

void turn_away(Exchange& exchange, const std::string& reason, const std::exception_ptr& why) {
  wire::Refused refused;
  refused.set_reason(reason);
  const auto refuse = [answer = wire::encode_frame(refused)](Exchange& self) {
    self.write_last(answer);
  };
  if (const Milliseconds delay = delay_of(why); delay > Milliseconds(0)) {
    exchange.take_later(delay, refuse);
  } else {
    refuse(exchange);
  }
}

void say_welcome(Exchange& exchange, const wire::Welcome& welcome, const Finished& finished) {
  exchange.on_failure([=](Exchange& self, const std::exception_ptr& why) {
    finished({why, welcome, self.release()});
  });
  exchange.write(wire::encode_frame(welcome), [=](Exchange& self) {
    finished({nullptr, welcome, self.release()});
  });
}

void receive_answer(Exchange& exchange, const Finished& finished) {
  const wire::Welcome welcome = wire::decode_answer(exchange.kind(), exchange.payload());
  finished({nullptr, welcome, exchange.release()});
}

/// Takes the Hello that `exchange` has read, and what follows, up to the Welcome that makes the
/// stream a connection.
void take_hello(Exchange& exchange, const std::string& from, const Answer& answer);

void await_hello(Exchange& exchange, const std::string& from, const Answer& answer) {
  exchange.read([from, answer](Exchange& self) { take_hello(self, from, answer); });
}

/// After a Hello that measures: a probe, which is answered, and then a Hello; or a Hello at once.
void await_probe(Exchange& exchange, const wire::Welcome& welcome, const std::string& from,
                 const Answer& answer) {
  exchange.read(
      [=](Exchange& self) {
        if (self.kind() != wire::FrameKind::probe) {
          return take_hello(self, from, answer);
        }
        self.write(wire::encode_frame(welcome),
                   [=](Exchange& measured) { await_hello(measured, from, answer); });
      },
      wire::probe_bytes);
}

void take_hello(Exchange& exchange, const std::string& from, const Answer& answer) {
  const wire::Hello hello = wire::decode_hello(exchange.kind(), exchange.payload());
  const wire::Welcome welcome = answer.validate(hello, from);
  if (!hello.measures()) {
    exchange.set_introduced();
    return say_welcome(exchange, welcome, answer.finished);
  }
  if (exchange.is_introduced()) {
    throw ProtocolError("expected one measurement of a stream, found another");
  }
  exchange.set_introduced();
  exchange.write(wire::encode_frame(welcome),
                 [=](Exchange& self) { await_probe(self, welcome, from, answer); });
}

/// Dials until a node listens there. Its handlers own it.
class Redial : public std::enable_shared_from_this<Redial> {
 public:
  Redial(asio::io_context& io, Dial dial, Finished finished)
      : io_(io),
        timer_(io),
        dial_(std::move(dial)),
        finished_(std::move(finished)),
        deadline_(SteadyTime::now() + dial_.limit) {}

  void attempt() {
    Dial dial = dial_;
    dial.limit = std::chrono::ceil<Milliseconds>(deadline_ - SteadyTime::now());
    tcp::dial(io_, dial, [self = shared_from_this()](HandshakeResult result) {
      self->finish(std::move(result));
    });
  }

 private:
  void finish(HandshakeResult result) {
    try {
      if (result.error) {
        std::rethrow_exception(result.error);
      }
    } catch (const asio::system_error& error) {
      if (SteadyTime::now() + retry_interval < deadline_) {
        return attempt_later();
      }
      result.error = std::make_exception_ptr(TimedOut(
          fmt::format("nobody answers at {} within {} ms ({}): is the coordinator running there?",
                      to_string(dial_.endpoint), dial_.limit.count(), error.code().message())));
    } catch (const Error&) {
      // The answer gave the reason; another attempt would end the same way.
    }
    finished_(std::move(result));
  }

  void attempt_later() {
    timer_.expires_after(retry_interval);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (!cancelled) {
        self->attempt();
      }
    });
  }

  asio::io_context& io_;
  Timer timer_;
  const Dial dial_;
  const Finished finished_;
  const SteadyTime::time_point deadline_;
};

}  // namespace

Exchange::Exchange(Socket socket, std::chrono::milliseconds limit)
    : channel_(std::move(socket)), timer_(channel_.socket().get_executor()), limit_(limit) {}

void Exchange::start(Failed failed) {
  failed_ = std::move(failed);
  restart(limit_);
}

void Exchange::restart(std::chrono::milliseconds limit) {
  limit_ = limit;
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
    if (self->abandoned_) {
      return;  // the operation had succeeded just before the handshake was abandoned
    }
    if (error) {
      return self->fail(std::make_exception_ptr(asio::system_error(error)));
    }
    try {
      next(*self);
    } catch (const Error&) {
      if (!self->failed_) {
        throw;  // the handshake is over: the error is not the remote's
      }
      self->fail(std::current_exception());
    } catch (const asio::system_error&) {
      self->fail(std::current_exception());
    }
  };
}

void Exchange::connect(const Endpoint& endpoint, Step next) {
  const auto handler = then(std::move(next));
  channel_.socket().async_connect(endpoint, [this, endpoint, handler](asio::error_code error) {
    // If no process listens, the system may connect a socket of that port to itself.
    asio::error_code unknown;
    if (!error && channel_.socket().local_endpoint(unknown) == endpoint) {
      error = asio::error::connection_refused;
    }
    handler(error);
  });
}

void Exchange::encrypt(const Tls& tls, Tls::Side side, const Step& next) {
  channel_.encrypt(tls, side);
  shake_hands(next);
}

void Exchange::shake_hands(const Step& next) {
  const auto again = [next](Exchange& self) { self.shake_hands(next); };
  switch (channel_.tls()->shake_hands()) {
    case TlsSession::Next::done: return next(*this);
    case TlsSession::Next::read: return await(Socket::wait_read, again);
    case TlsSession::Next::write: return await(Socket::wait_write, again);
  }
}

void Exchange::peek(const std::function<void(Exchange&, unsigned char first)>& next) {
  await(Socket::wait_read, [next](Exchange& self) {
    std::array<unsigned char, 1> first{};
    asio::error_code error;
    self.channel_.socket().receive(asio::buffer(first), Socket::message_peek, error);
    if (error == asio::error::would_block) {
      return self.peek(next);
    }
    if (error) {
      throw asio::system_error(error);
    }
    next(self, first[0]);
  });
}

void Exchange::await(Socket::wait_type what, Step next) {
  channel_.socket().async_wait(what, then(std::move(next)));
}

void Exchange::write(std::vector<std::byte> frame, const Step& next) {
  outgoing_ = std::move(frame);
  written_ = 0;
  write_rest(next);
}

void Exchange::write_rest(const Step& next) {
  while (written_ < outgoing_.size()) {
    const auto rest = std::to_array({asio::buffer(std::as_const(outgoing_)) + written_});
    asio::error_code error;
    written_ += channel_.write_some(rest, error);
    if (error == asio::error::would_block) {
      return await(Socket::wait_write, [next](Exchange& self) { self.write_rest(next); });
    }
    if (error) {
      return then(next)(error);
    }
  }
  next(*this);
}

void Exchange::read(Step next, std::uint64_t limit) {
  fill(header_,
       [next = std::move(next), limit](Exchange& self) { self.read_payload(next, limit); });
}

void Exchange::read_payload(const Step& next, std::uint64_t limit) {
  const wire::FrameHeader header = wire::decode_frame_header(header_, limit);
  kind_ = header.kind;
  incoming_.resize(header.length);
  fill(incoming_, next);
}

void Exchange::fill(std::span<std::byte> rest, const Step& next) {
  while (!rest.empty()) {
    const auto space = std::to_array({asio::buffer(rest.data(), rest.size())});
    asio::error_code error;
    rest = rest.subspan(channel_.read_some(space, error));
    if (error == asio::error::would_block) {
      return await(Socket::wait_read, [rest, next](Exchange& self) { self.fill(rest, next); });
    }
    if (error) {
      return then(next)(error);
    }
  }
  next(*this);
}

void Exchange::write_last(const std::vector<std::byte>& frame) {
  const auto all = std::to_array({asio::buffer(frame)});
  asio::error_code ignored;  // the refused node may have gone already
  channel_.write_some(all, ignored);
}

Channel Exchange::release() {
  timer_.cancel();
  failed_ = nullptr;
  return std::move(channel_);
}

void Exchange::abandon() {
  abandoned_ = true;
  timer_.cancel();
  failed_ = nullptr;
  end_stream_at_once(channel_.socket());
}

void Exchange::take_later(std::chrono::milliseconds delay, Step next) {
  timer_.expires_after(delay);
  timer_.async_wait(
      [self = shared_from_this(), next = std::move(next)](const asio::error_code& cancelled) {
        if (!cancelled) {
          next(*self);
        }
      });
}

void Exchange::expire() {
  expired_ = true;
  end_stream_at_once(channel_.socket());
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

PendingHandshake answer_handshake(Socket socket, const Tls* tls, Milliseconds limit,
                                  const Answer& answer) {
  const std::string remote = remote_name(socket);
  const std::string address = remote_address(socket);
  const auto exchange = std::make_shared<Exchange>(std::move(socket), limit);
  exchange->start([remote, answer](Exchange& self, const std::exception_ptr& why) {
    if (self.is_introduced() && is_of_stream(why)) {
      return;  // a node of this job has measured this stream, and takes another one
    }
    const std::string reason = reason_of(why);
    answer.turned_away(remote, reason);
    turn_away(self, reason, why);
  });
  exchange->peek([tls, address, answer](Exchange& self, unsigned char first) {
    if (tls == nullptr) {
      await_hello(self, address, answer);
    } else if (first == Tls::first_byte) {
      self.encrypt(*tls, Tls::Side::answers,
                   [address, answer](Exchange& proven) { await_hello(proven, address, answer); });
    } else {
      throw ConfigError("the streams of this job are encrypted: join it with its key (--secret)");
    }
  });
  return exchange;
}

PendingHandshake connect(asio::io_context& io, const Dial& dial,
                         const std::function<void(std::exception_ptr)>& failed,
                         const Exchange::Step& next) {
  asio::error_code error;
  Socket socket = open_socket(io, dial.endpoint, error);
  if (error) {
    asio::post(io, [=] { failed(std::make_exception_ptr(asio::system_error(error))); });
    return {};
  }
  const auto exchange = std::make_shared<Exchange>(std::move(socket), dial.limit);
  exchange->start([failed](Exchange& self, const std::exception_ptr& why) {
    self.release();  // ends the stream
    failed(why);
  });
  exchange->connect(dial.endpoint, [tls = dial.tls, next](Exchange& connected) {
    if (tls != nullptr) {
      connected.encrypt(*tls, Tls::Side::dials, next);
    } else {
      next(connected);
    }
  });
  return exchange;
}

void greet(Exchange& connected, const wire::Hello& hello, const Finished& finished) {
  connected.write(wire::encode_frame(hello), [finished](Exchange& introduced) {
    introduced.read([finished](Exchange& answered) { receive_answer(answered, finished); });
  });
}

PendingHandshake dial(asio::io_context& io, const Dial& dial, const Finished& finished) {
  return connect(
      io, dial,
      [finished](const std::exception_ptr& why) {
        finished({why, {}, std::nullopt});
      },
      [hello = dial.hello, finished](Exchange& connected) { greet(connected, hello, finished); });
}

void dial_until_there(asio::io_context& io, const Dial& dial, const Finished& finished) {
  std::make_shared<Redial>(io, dial, finished)->attempt();
}

}  // namespace syncopate::tcp
