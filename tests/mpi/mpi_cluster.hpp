#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/real_world.hpp"
#include "tests/contract/contract_cluster.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::contract {

/// The state that all tests share: MPI starts once in a process.
struct MpiHome {
  std::unique_ptr<mpi::Session> session;
  std::vector<std::uint32_t> joined;  ///< number of nodes of each rank that have joined so far
};

/// Nodes on threads of all MPI ranks, which communicate through MPI. Node n is on rank n modulo the
/// number of ranks. All ranks make the same clusters in the same order, and synchronize before
/// bodies begin and after they have ended.
class MpiCluster : public ContractCluster {
 public:
  MpiCluster(MpiHome& home, bool shared_memory) : home_(home), shared_memory_(shared_memory) {}

  void run(std::size_t nodes, Introductions introductions, const Body& body) override;
  /// Requires a node of this rank.
  void kill(NodeId node) override;

 private:
  void connect(std::size_t nodes);
  void introduce_all();
  void run_node(World& world, const Body& body);
  std::uint32_t rank_of(std::size_t node) const;
  bool is_here(std::size_t node) const { return rank_of(node) == home_.session->rank(); }
  void meet();

  MpiHome& home_;
  const bool shared_memory_;
  std::vector<std::string> addresses_;                        ///< of all nodes
  std::map<std::size_t, std::unique_ptr<RealWorld>> worlds_;  ///< of this rank's nodes
  std::mutex mutex_;
  std::set<NodeId> killed_;
  std::exception_ptr error_;
};

/// Returns the state of this process. `main` fills it in when it has started MPI.
MpiHome& home();

}  // namespace syncopate::contract
