#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/port_range.hpp"
#include "transport/tcp/network.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// Transport over TCP. Node 0, the coordinator, listens; the others join it and get the numbers 1,
/// 2, 3… in the order in which they arrive. Of two introduced nodes, the one with the greater
/// number dials.
///
/// Threads:  the transport's own thread runs the sockets; the sending thread writes a small message
///           to its socket. See `docs/internals/threads.md`.
/// One host: two nodes that can map each other's memory share memory (`shared_memory`) and send
///           messages through rings in it; a socket carries wake-up events and reports the end of
///           the other node (`Stream`). Between hosts, the socket carries all bytes. If node 0
///           shares no memory, no node does.
/// Security: a stream begins with a handshake in which both sides show the protocol's version and
///           the dialling node shows the job's token. A node that fails, or sends nothing in time,
///           is refused; other nodes do not notice. At most 64 streams wait for their handshake;
///           the oldest is closed when another one arrives. The refusal of a wrong token is
///           delayed, longer each time, which delays only that node. Beyond loopback streams are
///           encrypted (`Network::encrypted`): TLS 1.3, with the token as the key that all nodes
///           have, before the first frame; or the user declares that the network is trusted.
/// Memory:   a node keeps messages that no receive takes. It stops reading from a peer that has
///           more than `unclaimed_limit` bytes of them, until some are received, or until a receive
///           waits for a message that this peer could send: that message may be queued behind
///           messages of other tags. So a waiting receive always keeps the stream moving, even
///           beyond the limit. A message that this node does not accept (`PayloadLimits`) is
///           dropped. A message that no receive waits for gets memory as its bytes arrive. An
///           incomplete message is freed when its sender is lost.
/// Loss:     a node notices the end of a stream at once, but not silence: heartbeats find a node
///           that hangs, or that was introduced and never dials.
/// Lifetime: transfers end before their transport is destroyed.
class TcpTransport : public Transport {
 public:
  struct Limits {
    std::chrono::milliseconds handshake_timeout{5000};  ///< for a dialling node to complete it
    std::chrono::milliseconds wrong_key_delay{250};     ///< of the refusal; doubles each time
    std::uint64_t message_bytes = std::uint64_t{1} << 32;
    std::size_t unclaimed_limit = std::size_t{1} << 28;
  };

  struct ListenOptions {
    std::string token;                    ///< the secret that every node of the job knows
    std::string address = "127.0.0.1:0";  ///< HOST:PORT; port 0 takes a free one
    std::optional<int> descriptor{};      ///< a listening socket to own, instead of `address`
    bool shared_memory = true;            ///< if both sides are on one host
    tcp::Network network = tcp::Network::loopback;
    bool control_only = false;  ///< takes only control messages, as a job's coordinator
    Limits limits{};
  };

  struct JoinOptions {
    std::string coordinator;  ///< HOST:PORT of node 0
    std::string token;        ///< as the coordinator has it
    /// Where this node listens for its peers; empty: at a free port of the address from which it
    /// reaches the coordinator.
    std::string address = "127.0.0.1:0";
    PortRange ports{};  ///< instead of any free port
    /// Also at each other address of this host, if the network is encrypted: each peer takes the
    /// one to which its link is the fastest.
    bool all_interfaces = false;
    std::chrono::milliseconds timeout{10'000};  ///< for the coordinator to appear and to answer
    bool shared_memory = true;                  ///< if both sides are on one host
    tcp::Network network = tcp::Network::loopback;
    Limits limits{};
  };

  /// Opens node 0. Errors: ConfigError if the address is not loopback or is in use, or if the
  /// descriptor is not a listening socket.
  static std::unique_ptr<TcpTransport> listen(const ListenOptions& options);

  /// Opens a node with the number that the coordinator gives it. Retries while no node listens at
  /// the coordinator's address.
  ///
  /// Errors: TimedOut; ConfigError if the coordinator refuses, with its reason, or an address is
  ///         not loopback; ProtocolError if the other side has another version or is not a
  ///         Syncopate node.
  static std::unique_ptr<TcpTransport> join(const JoinOptions& options);
};

}  // namespace syncopate
