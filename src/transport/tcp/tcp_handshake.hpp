#pragma once

#include <asio/basic_waitable_timer.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "transport/steady_time.hpp"
#include "transport/tcp/channel.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {

/// Suspensions of this process do not count.
using Timer = asio::basic_waitable_timer<SteadyTime>;

/// A socket that writes and reads the single frames of a handshake until a deadline.
///
/// Its handlers own it, so it lives while an operation is under way. Only the engine uses it.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  /// The next step after a success. An Error that it throws counts as a failure.
  using Step = std::function<void(Exchange&)>;
  /// Called once, for the first failure.
  using Failed = std::function<void(Exchange&, std::exception_ptr)>;

  Exchange(Socket socket, std::chrono::milliseconds limit);

  /// Starts the timer.
  void start(Failed failed);
  /// Starts the timer again.
  void restart(std::chrono::milliseconds limit);
  void on_failure(Failed failed) { failed_ = std::move(failed); }

  void connect(const Endpoint& endpoint, Step next);
  /// Encrypts what follows. Errors: as `TlsSession::shake_hands`.
  void encrypt(const Tls& tls, Tls::Side side, const Step& next);
  /// Waits for the first byte, and leaves it where it is.
  void peek(const std::function<void(Exchange&, unsigned char first)>& next);
  void write(std::vector<std::byte> frame, const Step& next);
  /// Errors: ProtocolError if the frame is not one of a handshake, or longer than `limit`.
  void read(Step next, std::uint64_t limit = wire::handshake_limit);
  /// Writes the bytes that the kernel takes at once, and ignores the rest.
  void write_last(const std::vector<std::byte>& frame);

  wire::FrameKind kind() const { return kind_; }                    ///< of the frame read last
  std::span<const std::byte> payload() const { return incoming_; }  ///< of the same frame

  /// Releases the stream and stops the timer.
  Channel release();

  /// Breaks the stream and stops the timer, without a failure.
  void abandon();

  /// Takes the step `next` after `delay`; the time limit does not apply any more.
  void take_later(std::chrono::milliseconds delay, Step next);

  bool is_open() const { return channel_.socket().is_open(); }
  /// True if the remote node has shown that it belongs to the job.
  bool is_introduced() const { return introduced_; }
  void set_introduced() { introduced_ = true; }

 private:
  auto then(Step next);
  void await(Socket::wait_type what, Step next);
  void shake_hands(const Step& next);
  void write_rest(const Step& next);
  void fill(std::span<std::byte> rest, const Step& next);
  void read_payload(const Step& next, std::uint64_t limit);
  void expire();
  void fail(std::exception_ptr why);

  Channel channel_;
  Timer timer_;
  std::chrono::milliseconds limit_;
  Failed failed_;
  bool expired_ = false;
  bool introduced_ = false;
  bool abandoned_ = false;
  wire::FrameKind kind_{};
  wire::FrameHeaderBytes header_{};
  std::vector<std::byte> incoming_;
  std::vector<std::byte> outgoing_;
  std::size_t written_ = 0;  ///< of these
};

// The first frames of a stream: Hello from the node that dials, Welcome or Refused from the other.
// The engine runs everything here, and every call returns at once.

/// A handshake under way. A node that leaves abandons it.
using PendingHandshake = std::weak_ptr<Exchange>;

/// The result of a handshake.
struct HandshakeResult {
  std::exception_ptr error;  ///< if it is set, the other members are empty
  wire::Welcome welcome;
  std::optional<Channel> channel;
};

/// A node has shown another key than that of the job.
class WrongKey : public ConfigError {
 public:
  /// The node receives the refusal after `delay`.
  WrongKey(const std::string& message, std::chrono::milliseconds delay)
      : ConfigError(message), delay_(delay) {}

  std::chrono::milliseconds delay() const { return delay_; }

 private:
  std::chrono::milliseconds delay_;
};

using Finished = std::function<void(HandshakeResult)>;

/// How a node answers those that connect to it.
struct Answer {
  /// Validates a Hello that came from `address`. Throws an Error to refuse the node, which receives
  /// its message as the reason.
  std::function<wire::Welcome(const wire::Hello&, const std::string& address)> validate;
  /// Called with the welcome of a validated node, and with an error if the stream broke at that
  /// moment.
  Finished finished;
  /// Called with the name of the other end if it failed the handshake, and was refused.
  std::function<void(const std::string& remote, const std::string& reason)> turned_away;
};

/// Answers the handshake of the node at the other end of `socket`, encrypted unless `tls` is null,
/// which outlives the handshake.
PendingHandshake answer_handshake(Socket socket, const Tls* tls, std::chrono::milliseconds limit,
                                  const Answer& answer);

struct Dial {
  Endpoint endpoint;
  wire::Hello hello;
  const Tls* tls;  ///< null: without encryption; outlives the handshake
  std::chrono::milliseconds limit;
};

/// Connects, and proves the key where streams are encrypted; then takes the step `next`. `failed`
/// gets the error of that, and of each later step.
PendingHandshake connect(asio::io_context& io, const Dial& dial,
                         const std::function<void(std::exception_ptr)>& failed,
                         const Exchange::Step& next);

/// Says hello on a connected stream. Errors: those of the exchange.
void greet(Exchange& connected, const wire::Hello& hello, const Finished& finished);

/// Connects and says hello.
///
/// Errors, in the result: asio::system_error (no listener there, or the stream broke), TimedOut,
/// and those of `wire::decode_answer`.
PendingHandshake dial(asio::io_context& io, const Dial& dial, const Finished& finished);

/// As `dial`, but retries while no node listens there, until the limit. Errors: as `dial`, but
/// TimedOut instead of asio::system_error.
void dial_until_there(asio::io_context& io, const Dial& dial, const Finished& finished);

}  // namespace syncopate::tcp
