#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/bench_processes.hpp"
#include "collective/group.hpp"
#include "job/launch/known_coordinator.hpp"
#include "runtime/world.hpp"
#include "transport/mpi/mpi_session.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {

/// One process of a benchmark that needs several: a node of a job without a coordinator.
struct Node {
  World& world;
  Group& all;  ///< every node, in the order of the processes
  BenchReporter& reporter;
};

/// The rendezvous of a benchmark's nodes. The nodes may run on several hosts; their network is
/// trusted, unless the transport encrypts.
struct BenchEndpoint {
  std::string transport;  ///< one of `bench_transports`
  std::string token;
  std::string coordinator;              ///< the address of node 0
  std::optional<int> listener{};        ///< the listening socket of node 0; empty: bind one
  std::string address = "127.0.0.1:0";  ///< the address of another node
  std::uint32_t nodes;
  mpi::Session* session = nullptr;  ///< of transport mpi, which needs no addresses
};

/// The number of nodes, the index of this one, and how long it waits for the others.
struct Attendance {
  std::uint32_t nodes;
  std::uint32_t index;
  Duration patience = std::chrono::seconds(20);
  /// At index 0: the transport of node 0, if that node only introduces the others.
  Transport* host = nullptr;
};

/// Connects to the other nodes over `transport`, runs `body` with the group of all nodes, in the
/// order of their indices, and leaves when all have finished it. Errors: TimedOut, which names the
/// missing nodes; those of transports, and of the body.
void take_part(std::unique_ptr<Transport> transport, const Attendance& attendance,
               const std::function<void(World&, Group&)>& body);

/// The same for ranks that may be on several hosts, over the links that a job would take. `own`
/// holds the token, and whether streams are encrypted. Errors: also ConfigError.
void take_part_between_hosts(const KnownCoordinator& known, std::string_view transport,
                             TransportOptions own, Attendance attendance,
                             const std::function<void(World&, Group&)>& body);

/// Runs node `index`: connects to the other nodes, runs `body` with the group of all nodes, in the
/// order of their indices, and leaves when all have finished it. Errors: those of transports, and
/// of the body.
void take_part(const BenchEndpoint& endpoint, std::uint32_t index,
               const std::function<void(World&, Group&)>& body);

/// Runs a node for each name, connected to all others over `transport`, one of `bench_transports`.
/// All nodes finish `body` before any closes. Otherwise as `run_processes`. With mpi, and under a
/// launcher with `coordinator_variable`, this process is one node: the launcher started all of them
/// and gave this one its rank. Between hosts tcp does not encrypt what is measured.
int run_nodes(const BenchCommand& command, const std::vector<std::string>& names,
              const std::function<void(Node&)>& body);

}  // namespace syncopate::cli
