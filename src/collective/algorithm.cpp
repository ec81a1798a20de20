#include "collective/algorithm.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace syncopate {
namespace {

using Named = std::pair<Algorithm, std::string_view>;

constexpr std::array<Named, 8> names{{{Algorithm::automatic, "auto"},
                                      {Algorithm::shm, "shm"},
                                      {Algorithm::ring, "ring"},
                                      {Algorithm::butterfly, "butterfly"},
                                      {Algorithm::binary_blocks, "binary-blocks"},
                                      {Algorithm::tree, "tree"},
                                      {Algorithm::two_level, "two-level"},
                                      {Algorithm::mpi, "mpi"}}};

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  return std::find_if(names.begin(), names.end(),
                      [&](const Named& named) { return named.first == algorithm; })
      ->second;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Named& named) { return named.second == name; });
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace syncopate
