#include "data/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

/// Draws of Dirichlet proportions before a split is refused.
constexpr int draws_at_most = 100;

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

}  // namespace

Partition::Partition(std::span<const Label> labels, PartitionOptions options)
    : options_(std::move(options)), samples_(labels.size()) {
  check(options_, labels.size());
  if (!keeps_parts()) {
    sizes_ = apportion(labels.size(), options_.shares);
    return;
  }
  kept_ = skewed_parts(labels);
  expect_least(kept_);
  std::ranges::transform(kept_, std::back_inserter(sizes_), &Parts::value_type::size);
}

Parts Partition::skewed_parts(std::span<const Label> labels) const {
  const auto workers = static_cast<std::uint32_t>(options_.shares.size());
  if (options_.split.kind == Split::Kind::by_class) {
    return parts_by_class(labels, workers);
  }
  const Random source(options_.seed);
  Parts parts;
  for (int draw = 0; draw < draws_at_most; ++draw) {
    parts = dirichlet_parts(labels, workers, options_.split.alpha,
                            source.fork("Dirichlet proportions", static_cast<std::uint64_t>(draw)));
    if (complete(parts)) {
      break;
    }
  }
  return parts;
}

std::size_t Partition::least_of(std::size_t rank) const {
  return options_.least.empty() ? 1 : options_.least.at(rank);
}

bool Partition::complete(const Parts& parts) const {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].size() < least_of(rank)) {
      return false;
    }
  }
  return true;
}

void Partition::expect_least(const Parts& parts) const {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].size() < least_of(rank)) {
      const bool drawn = options_.split.kind == Split::Kind::dirichlet;
      throw ConfigError(fmt::format(
          "split {} leaves worker {} {} samples, fewer than a mini-batch of {}{}; use fewer "
          "workers, smaller batches or {}",
          to_string(options_.split), rank, parts[rank].size(), least_of(rank),
          drawn ? fmt::format(", in the last of {} draws", draws_at_most) : "",
          drawn ? "a larger alpha" : "another split"));
    }
  }
}

std::vector<std::uint32_t> Partition::part(Rank worker, Epoch epoch) const {
  const Random source(options_.seed);
  if (keeps_parts()) {
    auto part = kept_[worker.value];
    source.fork("order of parts", worker.value).fork("epoch", epoch.value).shuffle(std::span(part));
    return part;
  }
  std::vector<std::uint32_t> all(samples_);
  std::iota(all.begin(), all.end(), 0U);
  source.fork("order of samples", epoch.value).shuffle(std::span(all));
  const auto begin = std::accumulate(sizes_.begin(), sizes_.begin() + worker.value, std::size_t{0});
  const auto part = std::span(all).subspan(begin, size(worker));
  return {part.begin(), part.end()};
}

}  // namespace syncopate
