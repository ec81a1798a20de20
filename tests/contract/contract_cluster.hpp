#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/world.hpp"

namespace syncopate::contract {

/// The introductions before the bodies start.
enum class Introductions {
  everyone,      ///< every node to every other node
  to_node_zero,  ///< node 0 to every other node, and no node to node 0
};

using Body = std::function<void(World&)>;

/// A cluster of nodes on one backend, as the contract suites see it.
class ContractCluster {
 public:
  virtual ~ContractCluster() = default;

  /// Runs `body` once on each node, 0 to `nodes` − 1, at the same time, each in a world of its own.
  /// After a body has returned, its transport is closed, which flushes it. Called once.
  ///
  /// Errors: the first one that ended a body, after all bodies have ended.
  virtual void run(std::size_t nodes, Introductions introductions, const Body& body) = 0;

  /// Ends a node as if its process had died: its connections break, and messages that it has not
  /// sent yet are dropped. Its body may call this, and ends in any way; errors of the body from
  /// then on are not reported. Called while `run` runs.
  virtual void kill(NodeId node) = 0;

  void run(std::size_t nodes, const Body& body) { run(nodes, Introductions::everyone, body); }
};

using MakeCluster = std::unique_ptr<ContractCluster> (*)();

/// The contract of `Transport`. A backend plugs itself in with
///
///     INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract, testing::Values(make_tcp_cluster));
class TransportContract : public testing::TestWithParam<MakeCluster> {
 protected:
  /// Runs two nodes, each with a body of its own.
  void run_pair(const Body& zero, const Body& one) {
    cluster->run(2,
                 [&](World& world) { (world.transport().self().value == 0 ? zero : one)(world); });
  }

  std::unique_ptr<ContractCluster> cluster = GetParam()();
};

/// The contract of `World`. A backend plugs itself in with
///
///     INSTANTIATE_TEST_SUITE_P(Real, WorldContract, testing::Values(make_tcp_cluster));
class WorldContract : public testing::TestWithParam<MakeCluster> {
 protected:
  std::unique_ptr<ContractCluster> cluster = GetParam()();
};

}  // namespace syncopate::contract
