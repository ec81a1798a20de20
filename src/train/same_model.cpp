#include "train/same_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// FNV-1a (Fowler, Noll and Vo), of values in the place of bytes.
std::uint64_t checksum_of(std::span<const float> values) {
  std::uint64_t sum = 14695981039346656037U;
  for (const float value : values) {
    sum = (sum ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211U;
  }
  return sum;
}

}  // namespace

void expect_same_model(Group& workers, Replica& replica) {
  const std::uint64_t own = checksum_of(replica.view(ReplicaVector::params));
  std::vector<std::uint64_t> all(workers.size());
  allgather(workers, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  std::vector<std::size_t> others;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != all.front()) {
      others.push_back(rank);
    }
  }
  if (!others.empty()) {
    throw ConfigError(
        fmt::format("the job ends with several models: that of worker {} is not that of worker 0. "
                    "The parameters "
                    "were changed outside of the job's steps, as by the module's own optimizer, or "
                    "the workers' "
                    "optimizers have other learning rates or settings",
                    fmt::join(others, ", ")));
  }
}

}  // namespace syncopate
