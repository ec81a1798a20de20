#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/port_range.hpp"
#include "transport/transport.hpp"

namespace syncopate {

namespace mpi {
class Session;
}

/// The options with which a node opens a transport. A transport reads the fields that it needs.
struct TransportOptions {
  std::string token{};        ///< the secret that every node of the job knows
  std::string coordinator{};  ///< HOST:PORT of node 0; for `join`
  /// HOST:PORT where this node listens; port 0: a free one. Empty, for `join`: a free port of the
  /// address from which it reaches the coordinator.
  std::string address = "127.0.0.1:0";
  std::string interface {};         ///< of this host, in place of the address; for `join`
  PortRange ports{};                ///< instead of any free port; for `join`
  std::optional<int> descriptor{};  ///< a listening socket to own instead; for `listen`
  std::optional<std::chrono::milliseconds> timeout{};  ///< of `join`; empty: the transport's own
  /// The token is a key that the user has given to all nodes: it encrypts the streams, and nodes
  /// may be beyond loopback.
  bool encrypted = false;
  bool unencrypted = false;         ///< beyond loopback; for networks that are trusted
  bool control_only = false;        ///< node 0 takes only control messages; for `listen`
  mpi::Session* session = nullptr;  ///< this process among the ranks of MPI, once MPI has started
};

/// The description of a transport, which the transport's own folder defines.
struct TransportSpec {
  std::string_view name;  ///< the value of `--transport`
  /// True if this process can open the transport with these options.
  bool (*available)(const TransportOptions& options);
  /// Opens node 0 of a job. Errors: those of the transport.
  std::unique_ptr<Transport> (*listen)(const TransportOptions& options);
  /// Opens another node, which node 0 numbers. Errors: those of the transport.
  std::unique_ptr<Transport> (*join)(const TransportOptions& options);
};

/// The names of all transports, in the order of help texts. Needs no transport's code.
inline constexpr auto transport_names = std::to_array<std::string_view>({
#define TRANSPORT(name) #name,
#include "transport/transports.inc"
#undef TRANSPORT
});

/// All transports, in the same order.
std::span<const TransportSpec> all_transports();

/// Opens node 0 over the transport of this name.
/// Errors: ConfigError if no transport has the name or this process cannot open it; those of the
///         transport.
std::unique_ptr<Transport> listen_over(std::string_view transport, const TransportOptions& options);

/// Opens another node. Errors: as `listen_over`.
std::unique_ptr<Transport> join_over(std::string_view transport, const TransportOptions& options);

}  // namespace syncopate
