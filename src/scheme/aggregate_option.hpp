#pragma once

#include <array>

#include "collective/cost_model.hpp"
#include "config/option_groups.hpp"
#include "config/option_values.hpp"

namespace syncopate {

/// What reduces what all workers contribute: an allreduce, or a parameter server.
enum class Aggregate { automatic, shm, ring, butterfly, binary_blocks, tree, mpi, server };
constexpr auto names_of(Aggregate) {
  return std::to_array<Named<Aggregate>>({{"auto", Aggregate::automatic},
                                          {"shm", Aggregate::shm},
                                          {"ring", Aggregate::ring},
                                          {"butterfly", Aggregate::butterfly},
                                          {"binary-blocks", Aggregate::binary_blocks},
                                          {"tree", Aggregate::tree},
                                          {"mpi", Aggregate::mpi},
                                          {"server", Aggregate::server}});
}

/// The allreduce that workers use where no server reduces.
inline Algorithm algorithm_of(Aggregate aggregate) {
  return algorithm_named(name_of_value(aggregate)).value_or(Algorithm::automatic);
}

namespace option {

inline constexpr Option<Aggregate> aggregate{
    .name = "aggregate",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "what adds up where all workers meet; auto: the cheapest allreduce; server: a parameter "
        "server, which keeps the model with --scheme nbssgd --commit racy"};

}  // namespace option

}  // namespace syncopate
