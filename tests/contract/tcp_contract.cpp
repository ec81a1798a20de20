// Runs the contract suites on threads. Their nodes talk through sockets, encrypted or not, or
// through the rings that nodes of one host share.

#include "tests/contract/contract_cluster.hpp"
#include "tests/contract/tcp_cluster.hpp"

namespace syncopate::contract {
namespace {

std::unique_ptr<ContractCluster> make_tcp_cluster() {
  return std::make_unique<TcpCluster>(false);
}

std::unique_ptr<ContractCluster> make_shm_cluster() {
  return std::make_unique<TcpCluster>(true);
}

std::unique_ptr<ContractCluster> make_encrypted_cluster() {
  return std::make_unique<TcpCluster>(false, tcp::Network::encrypted);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract, testing::Values(make_tcp_cluster));
INSTANTIATE_TEST_SUITE_P(Tcp, WorldContract, testing::Values(make_tcp_cluster));
INSTANTIATE_TEST_SUITE_P(Shm, TransportContract, testing::Values(make_shm_cluster));
INSTANTIATE_TEST_SUITE_P(Shm, WorldContract, testing::Values(make_shm_cluster));
INSTANTIATE_TEST_SUITE_P(Encrypted, TransportContract, testing::Values(make_encrypted_cluster));
INSTANTIATE_TEST_SUITE_P(Encrypted, WorldContract, testing::Values(make_encrypted_cluster));

}  // namespace
}  // namespace syncopate::contract
