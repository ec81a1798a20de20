#include "data/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

void check(const PartitionOptions& options, std::size_t samples) {
  if (options.shares.empty()) {
    throw ConfigError("partition: expected at least one worker, found none");
  }
  for (std::size_t rank = 0; rank < options.shares.size(); ++rank) {
    const double share = options.shares[rank];
    if (!(share > 0) || !std::isfinite(share)) {
      throw ConfigError(
          fmt::format("partition: the share of worker {} is {}; expected a finite number above 0",
                      rank, share));
    }
  }
  if (samples < options.shares.size()) {
    throw ConfigError(fmt::format(
        "partition: {} workers, but only {} training samples; use fewer workers or more data",
        options.shares.size(), samples));
  }
}

/// Sizes proportional to `shares` that add up to `samples`, by largest remainder: everyone gets the
/// whole part of its quota, and the largest fractions, lower ranks first, one sample more.
std::vector<std::size_t> apportion(std::size_t samples, const std::vector<double>& shares) {
  // Divided by the largest, so that the sum cannot overflow.
  const double largest = std::ranges::max(shares);
  double sum = 0;
  for (const double share : shares) {
    sum += share / largest;
  }
  std::vector<std::size_t> sizes;
  std::vector<double> remainders;
  for (const double share : shares) {
    const double quota = static_cast<double>(samples) * (share / largest) / sum;
    sizes.push_back(static_cast<std::size_t>(quota));
    remainders.push_back(quota - std::floor(quota));
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t rank) { return remainders[rank]; });
  const std::size_t given = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  for (std::size_t extra = 0; extra < samples - given; ++extra) {
    ++sizes[order[extra]];
  }
  return sizes;
}

}  // namespace

Partition::Partition(std::span<const std::uint8_t> labels, PartitionOptions options)
    : options_(std::move(options)) {
  check(options_, labels.size());
  ordered_.resize(labels.size());
  std::iota(ordered_.begin(), ordered_.end(), 0U);
  if (options_.split_by_class) {
    std::ranges::stable_sort(ordered_, {}, [&](std::uint32_t sample) { return labels[sample]; });
  }
  bounds_.push_back(0);
  for (const std::size_t size : apportion(labels.size(), options_.shares)) {
    bounds_.push_back(bounds_.back() + size);
  }
}

std::size_t Partition::size(Rank worker) const {
  return bounds_[worker.value + 1] - bounds_[worker.value];
}

std::vector<std::uint32_t> Partition::part(Rank worker, Epoch epoch) const {
  const Random source(options_.seed);
  const auto cut = [&](std::span<const std::uint32_t> all) {
    const auto part = all.subspan(bounds_[worker.value], size(worker));
    return std::vector<std::uint32_t>(part.begin(), part.end());
  };
  if (options_.split_by_class) {
    auto part = cut(ordered_);
    source.fork("order of parts", worker.value).fork("epoch", epoch.value).shuffle(std::span(part));
    return part;
  }
  auto all = ordered_;
  source.fork("order of samples", epoch.value).shuffle(std::span(all));
  return cut(all);
}

}  // namespace syncopate
