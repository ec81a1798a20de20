#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/tcp/sockets.hpp"
#include "wire/frame.hpp"
#include "wire/handshake.hpp"

namespace syncopate::tcp {

/// A socket that writes and reads the single frames of a handshake until a deadline.
///
/// Owned by its handlers: it lives while something is under way. Of the engine alone.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  /// What follows when something has gone well. An Error that it throws counts as gone wrong.
  using Step = std::function<void(Exchange&)>;
  /// Called once, for the first thing that goes wrong.
  using Failed = std::function<void(Exchange&, std::exception_ptr)>;

  Exchange(Socket socket, std::chrono::milliseconds limit);

  /// Begins to watch the deadline.
  void start(Failed failed);
  void on_failure(Failed failed) { failed_ = std::move(failed); }

  void connect(const Endpoint& endpoint, Step next);
  void write(std::vector<std::byte> frame, Step next);
  /// Errors: ProtocolError, where no frame of a handshake comes.
  void read(Step next);
  /// Writes what the kernel takes at once, and does not look back.
  void write_last(const std::vector<std::byte>& frame);

  wire::FrameKind kind() const { return kind_; }                    ///< of the frame read last
  std::span<const std::byte> payload() const { return incoming_; }  ///< likewise

  /// Takes the socket out and ends the watch.
  Socket release();

  /// Breaks the stream and ends the watch; nobody is told.
  void abandon();

 private:
  auto then(Step next);
  void read_payload(Step next);
  void expire();
  void fail(std::exception_ptr why);

  Socket socket_;
  asio::steady_timer timer_;
  const std::chrono::milliseconds limit_;
  Failed failed_;
  bool expired_ = false;
  wire::FrameKind kind_{};
  wire::FrameHeaderBytes header_{};
  std::vector<std::byte> incoming_;
  std::vector<std::byte> outgoing_;
};

class Exchange;

/// A handshake, for as long as it is under way: a node that leaves abandons it.
using PendingHandshake = std::weak_ptr<Exchange>;

/// How a handshake ended.
struct HandshakeResult {
  std::exception_ptr error;  ///< the rest says nothing where this is set
  wire::Welcome welcome;
  Socket socket;
};

/// Decides about a remote. Throws an Error to turn it away, with a reason that it is told.
using Validate = std::function<wire::Welcome(const wire::Hello&)>;
using Finished = std::function<void(HandshakeResult)>;

/// Hears who is at the other end of `socket`. Who fails is turned away with a line in the log; for
/// who was welcome to `validate`, `finished` is called, with an error and the welcome where the stream
/// broke at that moment.
PendingHandshake answer_handshake(Socket socket, std::chrono::milliseconds limit, Validate validate,
                                  Finished finished);

struct Dial {
  Endpoint endpoint;
  wire::Hello hello;
  std::chrono::milliseconds limit;
};

/// Connects and says who we are.
///
/// Errors, in the result: asio::system_error (nobody there, or the stream broke), TimedOut, and
/// those of `wire::decode_answer`.
PendingHandshake dial(asio::io_context& io, const Dial& dial, const Finished& finished);

/// As `dial`, again and again while nobody is there, until the limit. Errors: as `dial`, but TimedOut
/// instead of asio::system_error.
void dial_until_there(asio::io_context& io, const Dial& dial, const Finished& finished);

}  // namespace syncopate::tcp
