#pragma once

#include <optional>
#include <string_view>

namespace syncopate {

/// How the ranks of a group add up. `docs/collectives.md` tells what each costs.
enum class Algorithm {
  automatic,      ///< the cheapest of the others, by the length, the ranks and their links
  shm,            ///< collective/shared_allreduce.hpp
  ring,           ///< collective/ring.hpp
  butterfly,      ///< collective/butterfly.hpp
  binary_blocks,  ///< collective/binary_blocks.hpp
  tree,           ///< collective/tree.hpp
  two_level,      ///< collective/two_level.hpp
  mpi,            ///< transport/transport.hpp; never picked unasked
};

/// As on the command line: "auto", "binary-blocks".
std::string_view name_of(Algorithm algorithm);
/// Empty for a name of none.
std::optional<Algorithm> algorithm_named(std::string_view name);

}  // namespace syncopate
