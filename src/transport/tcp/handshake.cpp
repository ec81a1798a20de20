#include "transport/tcp/handshake.hpp"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/tcp/exchange.hpp"

namespace syncopate::tcp {
namespace {

using Milliseconds = std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

/// Between attempts to reach a coordinator that is not up yet.
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

void turn_away(Exchange& exchange, const std::string& stranger, const std::exception_ptr& why) {
  const std::string reason = reason_of(why);
  log::warn("turned away a connection from {}: {}", stranger, reason);
  wire::Refused refused;
  refused.set_reason(reason);
  exchange.write_last(wire::encode_frame(refused));
}

void say_welcome(Exchange& exchange, const wire::Welcome& welcome, const Settled& settled) {
  exchange.on_failure([=](Exchange& self, const std::exception_ptr& why) {
    settled({why, welcome, self.release()});
  });
  exchange.write(wire::encode_frame(welcome), [=](Exchange& self) {
    settled({nullptr, welcome, self.release()});
  });
}

void hear_answer(Exchange& exchange, const Settled& settled) {
  const wire::Welcome welcome = wire::decode_answer(exchange.kind(), exchange.payload());
  settled({nullptr, welcome, exchange.release()});
}

/// Dials until somebody is there. Owned by its handlers.
class Redial : public std::enable_shared_from_this<Redial> {
 public:
  Redial(asio::io_context& io, Dial dial, Settled settled)
      : io_(io),
        timer_(io),
        dial_(std::move(dial)),
        settled_(std::move(settled)),
        deadline_(SteadyClock::now() + dial_.limit) {}

  void attempt() {
    Dial dial = dial_;
    dial.limit = std::chrono::ceil<Milliseconds>(deadline_ - SteadyClock::now());
    tcp::dial(io_, dial,
              [self = shared_from_this()](Contact contact) { self->judge(std::move(contact)); });
  }

 private:
  void judge(Contact contact) {
    try {
      if (contact.error) {
        std::rethrow_exception(contact.error);
      }
    } catch (const asio::system_error& error) {
      if (SteadyClock::now() + retry_interval < deadline_) {
        return attempt_later();
      }
      contact.error = std::make_exception_ptr(TimedOut(
          fmt::format("nobody answers at {} within {} ms ({}): is the coordinator running there?",
                      to_string(dial_.endpoint), dial_.limit.count(), error.code().message())));
    } catch (const Error&) {
      // Whoever answered said why; another attempt would end the same way.
    }
    settled_(std::move(contact));
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
  asio::steady_timer timer_;
  const Dial dial_;
  const Settled settled_;
  const SteadyClock::time_point deadline_;
};

}  // namespace

UnderWay answer_handshake(Socket socket, Milliseconds limit, Judge judge, Settled settled) {
  const std::string stranger = remote_name(socket);
  const auto exchange = std::make_shared<Exchange>(std::move(socket), limit);
  exchange->start([stranger](Exchange& self, const std::exception_ptr& why) {
    turn_away(self, stranger, why);
  });
  exchange->read([judge = std::move(judge), settled = std::move(settled)](Exchange& self) {
    const wire::Hello hello = wire::decode_hello(self.kind(), self.payload());
    say_welcome(self, judge(hello), settled);
  });
  return exchange;
}

UnderWay dial(asio::io_context& io, const Dial& dial, const Settled& settled) {
  asio::error_code error;
  Socket socket = open_socket(io, dial.endpoint, error);
  if (error) {
    asio::post(io, [=, &io] {
      settled({std::make_exception_ptr(asio::system_error(error)), {}, Socket(io)});
    });
    return {};
  }
  const auto exchange = std::make_shared<Exchange>(std::move(socket), dial.limit);
  exchange->start([settled](Exchange& self, const std::exception_ptr& why) {
    settled({why, {}, self.release()});
  });
  exchange->connect(dial.endpoint, [hello = dial.hello, settled](Exchange& connected) {
    connected.write(wire::encode_frame(hello), [settled](Exchange& introduced) {
      introduced.read([settled](Exchange& answered) { hear_answer(answered, settled); });
    });
  });
  return exchange;
}

void dial_until_there(asio::io_context& io, const Dial& dial, const Settled& settled) {
  std::make_shared<Redial>(io, dial, settled)->attempt();
}

}  // namespace syncopate::tcp
