#pragma once

#include <gtest/gtest.h>

#include "tests/contract/contract_cluster.hpp"

namespace syncopate::contract {

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

}  // namespace syncopate::contract
