#pragma once

#include <gtest/gtest.h>

#include "tests/contract/contract_cluster.hpp"

namespace syncopate::contract {

/// What `World` promises. A backend plugs itself in with
///
///     INSTANTIATE_TEST_SUITE_P(Real, WorldContract, testing::Values(make_tcp_cluster));
class WorldContract : public testing::TestWithParam<MakeCluster> {
 protected:
  std::unique_ptr<ContractCluster> cluster = GetParam()();
};

}  // namespace syncopate::contract
