#pragma once

#include "tests/mpi/mpi_cluster.hpp"

namespace syncopate::contract {

/// That of this process, once `main` has started MPI.
MpiHome& home();

}  // namespace syncopate::contract
