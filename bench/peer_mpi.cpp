// The peer of `syncopate bench allreduce`: MPI_Allreduce, in place, with the MPI library with which
// this program is compiled (Open MPI or MPICH).
//
//     mpirun -n 4 peer_mpi 0.5 1000,44700000
//
// Rank 0 prints one line of JSON.

#include <mpi.h>

#include "bench/peer_rounds.hpp"

namespace {

peer::Library library_of_world() {
  peer::Library library{.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); },
                        .greatest =
                            [](std::vector<double>& numbers) {
                              MPI_Allreduce(MPI_IN_PLACE, numbers.data(),
                                            static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_MAX,
                                            MPI_COMM_WORLD);
                            }};
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.ranks);
  return library;
}

void measure(const peer::Effort& effort) {
  const peer::Library library = library_of_world();
  nlohmann::json results = nlohmann::json::array();
  for (const std::size_t bytes : effort.bytes) {
    std::vector<float> values(bytes / sizeof(float));
    results.push_back(peer::measure(library, effort.seconds, values, [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
    }));
  }
  if (library.rank == 0) {
    std::cout << nlohmann::json{{"results", results}}.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "peer_mpi SECONDS BYTES,...\n";
    return 2;
  }
  MPI_Init(&argc, &argv);
  measure({.bytes = peer::read_list(argv[2]), .seconds = std::stod(argv[1])});
  MPI_Finalize();
}
