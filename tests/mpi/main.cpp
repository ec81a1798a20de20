// Runs the contract suites on MPI: all nodes in one process, or spread over the ranks that a
// launcher starts.
//
//     mpi_contract_tests openmpi
//     mpirun.mpich -n 4 mpi_contract_tests mpich
//
// Ranks other than the first print failures only.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/contract/contract_cluster.hpp"
#include "tests/mpi/mpi_cluster.hpp"

namespace syncopate::contract {

MpiHome& home() {
  static MpiHome only;
  return only;
}

namespace {

std::unique_ptr<ContractCluster> make_mpi_cluster() {
  return std::make_unique<MpiCluster>(home(), false);
}

std::unique_ptr<ContractCluster> make_sharing_mpi_cluster() {
  return std::make_unique<MpiCluster>(home(), true);
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportContract, testing::Values(make_mpi_cluster));
INSTANTIATE_TEST_SUITE_P(Mpi, WorldContract, testing::Values(make_mpi_cluster));
INSTANTIATE_TEST_SUITE_P(MpiShm, TransportContract, testing::Values(make_sharing_mpi_cluster));

std::uint32_t launched(mpi::Library library) {
  const char* const size =
      std::getenv(library == mpi::Library::open_mpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE");
  return size == nullptr ? 1 : static_cast<std::uint32_t>(std::stoul(size));
}

}  // namespace
}  // namespace syncopate::contract

int main(int argc, char** argv) {
  using namespace syncopate;
  testing::InitGoogleTest(&argc, argv);
  const auto library =
      argc > 1 && std::string(argv[1]) == "mpich" ? mpi::Library::mpich : mpi::Library::open_mpi;
  contract::MpiHome& home = contract::home();
  home.session = mpi::start(
      library,
      {.expected_size = contract::launched(library), .allreduce = true, .modules = MPI_MODULES});
  home.joined.resize(home.session->size());
  if (home.session->rank() != 0) {
    GTEST_FLAG_SET(brief, true);
  }
  const int status = RUN_ALL_TESTS();
  home.session.reset();
  return status;
}
