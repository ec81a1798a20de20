#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "transport/tcp/sockets.hpp"
#include "wire/handshake.hpp"

/// The first frames of a stream: Hello from the node that dials, Welcome or Refused from the other.
/// The engine runs everything here, and every call returns at once.
namespace syncopate::tcp {

class Exchange;

/// A handshake, for as long as it is under way: a node that leaves abandons it.
using UnderWay = std::weak_ptr<Exchange>;

/// How a handshake ended.
struct Contact {
  std::exception_ptr error;  ///< the rest says nothing where this is set
  wire::Welcome welcome;
  Socket socket;
};

/// Decides about a stranger. Throws an Error to turn it away, with a reason that it is told.
using Judge = std::function<wire::Welcome(const wire::Hello&)>;
using Settled = std::function<void(Contact)>;

/// Hears who is at the other end of `socket`. Who fails is turned away with a line in the log; for
/// who was welcome to `judge`, `settled` is called, with an error and the welcome where the stream
/// broke at that moment.
UnderWay answer_handshake(Socket socket, std::chrono::milliseconds limit, Judge judge,
                          Settled settled);

struct Dial {
  Endpoint endpoint;
  wire::Hello hello;
  std::chrono::milliseconds limit;
};

/// Connects and says who we are.
///
/// Errors, in the contact: asio::system_error (nobody there, or the stream broke), TimedOut, and
/// those of `wire::decode_answer`.
UnderWay dial(asio::io_context& io, const Dial& dial, const Settled& settled);

/// As `dial`, again and again while nobody is there, until the limit. Errors: as `dial`, but TimedOut
/// instead of asio::system_error.
void dial_until_there(asio::io_context& io, const Dial& dial, const Settled& settled);

}  // namespace syncopate::tcp
