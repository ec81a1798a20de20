#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace syncopate {

/// The samples of each worker, by rank.
using Parts = std::vector<std::vector<std::uint32_t>>;

/// Sizes proportional to `shares` that add up to `samples`, by largest remainder: each share gets the
/// whole part of its quota, and the largest fractions, lower ranks first, one sample more. The shares
/// are finite, not negative, and not all 0.
std::vector<std::size_t> apportion(std::size_t samples, std::span<const double> shares);

/// Splits whole classes evenly over `workers`. Classes are dealt in the order of their sizes, the
/// largest first: each to the worker with the fewest classes, of these to the one with the fewest
/// samples, of these to the lowest rank. So the numbers of classes differ by one at most.
///
/// With more workers than classes every worker holds samples of one class: each further worker joins
/// the class with the most samples per worker, and the workers of a class share it evenly.
///
/// Invariant: every sample is in exactly one part.
Parts parts_by_class(std::span<const std::uint8_t> labels, std::uint32_t workers);

/// Splits each class over `workers` in proportions drawn from Dirichlet(α, …, α) (Hsu et al. 2019).
/// Invariant: every sample is in exactly one part. A part may be empty.
Parts dirichlet_parts(std::span<const std::uint8_t> labels, std::uint32_t workers, double alpha,
                      const Random& source);

}  // namespace syncopate
