#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_processes.hpp"
#include "collective/group.hpp"
#include "runtime/world.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::cli {

/// One process of a benchmark that needs several: a node of a job without a coordinator.
struct Node {
  World& world;
  Group& all;  ///< every node, in the order of the processes
  BenchReporter& reporter;
};

/// Where the nodes of a benchmark meet. They may be on several hosts, whose network is then
/// trusted: what they say to each other is no secret, and not encrypted.
struct BenchEndpoint {
  std::string transport;  ///< one of `bench_transports`
  std::string token;
  std::string coordinator;              ///< where node 0 listens
  std::optional<int> listener{};        ///< the socket that does, if there is one
  std::string address = "127.0.0.1:0";  ///< where another node listens
  std::uint32_t nodes;
  mpi::Session* session = nullptr;  ///< of transport mpi, which needs no addresses
};

/// How many nodes meet, which of them this is, and how long it waits for the others.
struct Attendance {
  std::uint32_t nodes;
  std::uint32_t index;
  Duration patience = std::chrono::seconds(20);
};

/// Meets the others over `transport`, runs `body` with the group of all, in the order of their
/// indices, and leaves when all have come to its end. Errors: TimedOut, which names who has not
/// come; those of transports, and of the body.
void take_part(std::unique_ptr<Transport> transport, const Attendance& attendance,
               const std::function<void(World&, Group&)>& body);

/// Lives the life of node `index`: meets the others, runs `body` with the group of all, in the
/// order of their indices, and leaves when all have come to its end. Errors: those of transports,
/// and of the body.
void take_part(const BenchEndpoint& endpoint, std::uint32_t index,
               const std::function<void(World&, Group&)>& body);

/// Runs as many nodes as there are names, each introduced to all others over `transport`, one of
/// `bench_transports`. All come to the end of `body` before any closes. As `run_processes`; with
/// mpi, this process is the one of them that its launcher says, of as many.
int run_nodes(const BenchCommand& command, const std::vector<std::string>& names,
              const std::function<void(Node&)>& body);

}  // namespace syncopate::cli
