#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/transport.hpp"

namespace syncopate {

/// Transport over TCP. Node 0, the coordinator, listens; the others join it and are numbered 1, 2, 3… in the
/// order in which they come. Of two introduced nodes the one with the greater number dials.
///
/// Threads:  one thread of its own does what sockets need; a small message is written to its socket
///           by the thread that sends it. See `docs/threads.md`.
/// Memory of one host: two nodes that can map each other's memory send their messages through rings in it,
///           beside a socket that wakes them and tells of the other's end (`Stream`), and lend each
///           other memory (`shared_memory`). Where that cannot be, the socket carries all; and where node
///           0 lends none, nobody does.
/// Security: a stream begins with a handshake in which both sides show the protocol's version and the
///           dialler the job's token; who fails, or says nothing in time, is turned away, and others
///           do not notice. Streams are not encrypted yet, so only loopback addresses are accepted, unless a node is told
///           (`unencrypted`) that whoever can listen to its network is trusted.
/// Memory:   messages that nobody waits for are kept. A peer with more than `unclaimed_limit` bytes
///           of them is not read from until some are received, or until a receive waits that this
///           peer could serve: what a receive waits for may stand behind messages of other tags, so
///           a waiting receive always keeps the stream moving, past the limit where it must.
/// Loss:     the end of a stream is noticed at once, silence is not: a node that hangs, or that was
///           introduced and never dials, is for heartbeats to find.
/// Lifetime: transfers end before their transport is destroyed.
class TcpTransport : public Transport {
 public:
  struct Limits {
    std::chrono::milliseconds handshake_timeout{5000};  ///< for a stranger to show who it is
    std::uint64_t message_bytes = std::uint64_t{1} << 32;
    std::size_t unclaimed_limit = std::size_t{1} << 28;
  };

  struct ListenOptions {
    std::string token;                    ///< what every node of the job knows
    std::string address = "127.0.0.1:0";  ///< HOST:PORT; port 0 takes a free one
    std::optional<int> descriptor{};      ///< a listening socket to own, instead of `address`
    bool shared_memory = true;            ///< where both sides are on one host
    bool unencrypted = false;             ///< beyond loopback; for networks that are trusted
    Limits limits{};
  };

  struct JoinOptions {
    std::string coordinator;                    ///< HOST:PORT of node 0
    std::string token;                          ///< as the coordinator has it
    std::string address = "127.0.0.1:0";        ///< where this node listens for its peers
    std::chrono::milliseconds timeout{10'000};  ///< for the coordinator to appear and to answer
    bool shared_memory = true;                  ///< where both sides are on one host
    bool unencrypted = false;                   ///< beyond loopback; for networks that are trusted
    Limits limits{};
  };

  /// Node 0. Errors: ConfigError: an address that is not loopback or is in use, a descriptor that is
  /// not a listening socket.
  static std::unique_ptr<TcpTransport> listen(const ListenOptions& options);

  /// A node with the number that the coordinator gives it. Tries again while nobody listens at the hub's
  /// address.
  ///
  /// Errors: TimedOut; ConfigError: the coordinator refuses, with its reason, or an address is not loopback;
  ///         ProtocolError: another version, or not a Syncopate node.
  static std::unique_ptr<TcpTransport> join(const JoinOptions& options);
};

}  // namespace syncopate
