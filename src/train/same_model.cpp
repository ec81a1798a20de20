#include "train/same_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>
#include <vector>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// |own − first| / |first|.
double distance_of(std::span<const float> own, std::span<const float> first) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double apart = double{own[i]} - double{first[i]};
    difference += apart * apart;
    norm += double{first[i]} * double{first[i]};
  }
  return difference > 0 ? std::sqrt(difference / norm) : 0;
}

}  // namespace

void expect_same_model(Group& workers, Replica& replica) {
  const std::span<const float> own = replica.view(ReplicaVector::params);
  std::vector<float> first(own.begin(), own.end());
  broadcast(workers, first);
  const double distance = distance_of(own, first);
  std::vector<double> all(workers.size());
  allgather(workers, std::as_bytes(std::span(&distance, 1)),
            std::as_writable_bytes(std::span(all)));
  std::vector<std::size_t> others;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] > most_by_rounding) {
      others.push_back(rank);
    }
  }
  if (!others.empty()) {
    throw ConfigError(fmt::format(
        "the job ends with several models: that of worker {} is not that of worker 0. Programs "
        "have "
        "changed parameters outside of the job's steps, as by the module's own optimizer, or their "
        "optimizers have other learning rates or settings: take all steps by the job, with the "
        "same "
        "settings on all workers",
        fmt::join(others, ", ")));
  }
}

}  // namespace syncopate
