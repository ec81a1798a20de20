#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/world.hpp"

namespace syncopate::contract {

/// Who is told of whom before the bodies start.
enum class Introductions {
  everyone,      ///< each node of each other node
  to_node_zero,  ///< each node of node 0 alone, and node 0 of nobody
};

using Body = std::function<void(World&)>;

/// A cluster of nodes on one backend: all that the contract suites know of it.
class ContractCluster {
 public:
  virtual ~ContractCluster() = default;

  /// Runs `body` once on each node, 0 to `nodes` − 1, at the same time, each in a world of its own.
  /// When a body has returned, its transport is closed, which flushes it. Called once.
  ///
  /// Errors: the first one that a body ended with, after all of them have ended.
  virtual void run(std::size_t nodes, Introductions introductions, const Body& body) = 0;

  /// Ends a node as the death of its process looks from outside: its connections break and what it
  /// has not yet sent is dropped. Its body, from which this may be called, ends in any way; what it
  /// throws from then on is not reported. Called while `run` runs.
  virtual void kill(NodeId node) = 0;

  void run(std::size_t nodes, const Body& body) { run(nodes, Introductions::everyone, body); }
};

using MakeCluster = std::unique_ptr<ContractCluster> (*)();

/// What `Transport` promises. A backend plugs itself in with
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

/// What `World` promises. A backend plugs itself in with
///
///     INSTANTIATE_TEST_SUITE_P(Real, WorldContract, testing::Values(make_tcp_cluster));
class WorldContract : public testing::TestWithParam<MakeCluster> {
 protected:
  std::unique_ptr<ContractCluster> cluster = GetParam()();
};

}  // namespace syncopate::contract
