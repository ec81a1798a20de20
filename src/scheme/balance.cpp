#include "scheme/balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// The total weight and the total samples of the parts that get more than `least`.
struct Rest {
  double weight = 0;
  std::uint32_t samples = 0;

  double share_of(double part) const { return samples * part / weight; }
};

Rest rest_beside(const std::vector<bool>& is_least, std::uint32_t whole,
                 std::span<const double> weights, std::uint32_t least) {
  Rest rest{.samples = whole};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    rest.weight += is_least[i] ? 0 : weights[i];
    rest.samples -= is_least[i] ? least : 0;
  }
  return rest;
}

/// Marks the parts whose share is below `least`; they get `least`. This leaves less for the other
/// parts, which may then fall below `least` too, so the loop repeats until no further part does.
std::vector<bool> least_parts(std::uint32_t whole, std::span<const double> weights,
                              std::uint32_t least) {
  std::vector<bool> is_least(weights.size(), false);
  for (bool changed = true; changed;) {
    const Rest rest = rest_beside(is_least, whole, weights, least);
    changed = false;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!is_least[i] && rest.share_of(weights[i]) < least) {
        is_least[i] = changed = true;
      }
    }
  }
  return is_least;
}

/// `divide` without `most`.
std::vector<std::uint32_t> divide_without_most(std::uint32_t whole, std::span<const double> weights,
                                               std::uint32_t least) {
  const std::vector<bool> is_least = least_parts(whole, weights, least);
  const Rest rest = rest_beside(is_least, whole, weights, least);
  std::vector<std::uint32_t> parts(weights.size(), least);
  std::vector<double> remainders(weights.size(), -1);
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!is_least[i]) {
      const double share = rest.share_of(weights[i]);
      parts[i] = static_cast<std::uint32_t>(share);
      remainders[i] = share - std::floor(share);
      given += parts[i];
    }
  }
  for (; given < rest.samples; ++given) {
    const auto most = std::max_element(remainders.begin(), remainders.end());
    ++parts[static_cast<std::size_t>(most - remainders.begin())];
    *most -= 1;
  }
  return parts;
}

}  // namespace

/// Parts that would be too large get their `most`. The others divide what is left, until none is.
std::vector<std::uint32_t> divide(std::uint32_t whole, std::span<const double> weights,
                                  std::uint32_t least, std::span<const std::uint32_t> most) {
  std::vector<std::uint32_t> parts(weights.size(), 0);
  std::vector<std::size_t> open(weights.size());  // parts that may still grow
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (bool all_fit = false; !all_fit;) {
    std::vector<double> weights_of_open;
    for (const std::size_t i : open) weights_of_open.push_back(weights[i]);
    const std::vector<std::uint32_t> divided = divide_without_most(whole, weights_of_open, least);
    std::vector<std::size_t> fitting;
    for (std::size_t n = 0; n < open.size(); ++n) {
      const std::size_t i = open[n];
      if (most.empty() || divided[n] <= most[i]) {
        parts[i] = divided[n];
        fitting.push_back(i);
      } else {
        parts[i] = most[i];
        whole -= most[i];
      }
    }
    all_fit = fitting.size() == open.size();
    open = std::move(fitting);
  }
  return parts;
}

Balance::Balance(Options options)
    : global_batch_(std::accumulate(options.batch_sizes.begin(), options.batch_sizes.end(),
                                    std::uint32_t{0})),
      least_(options.least),
      most_(std::move(options.most)),
      estimates_(options.batch_sizes.size()),
      sizes_(std::move(options.batch_sizes)) {
  if (global_batch_ < least_ * sizes_.size()) {
    throw ConfigError(
        fmt::format("a global batch of {} samples is too small to balance among {} "
                    "workers; expected {} a worker or more",
                    global_batch_, sizes_.size(), least_));
  }
}

void Balance::observe(std::span<const Step> steps) {
  std::vector<double> speeds;
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    PaceEstimate& estimate = estimates_[rank];
    estimate.observe(steps[rank].samples, steps[rank].took);
    if (estimate.known() && estimate.sample_seconds() > 0) {
      speeds.push_back(1 / estimate.sample_seconds());
    }
  }
  if (speeds.size() == estimates_.size()) {
    sizes_ = divide(global_batch_, speeds, least_, most_);
  }
}

}  // namespace syncopate
