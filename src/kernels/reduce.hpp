#pragma once

#include <cstddef>
#include <span>

namespace syncopate {

/// into[i] += from[i]. Both have the same length. Vectorised for the CPU at hand (Highway).
void add(std::span<float> into, std::span<const float> from);

/// into[i] = into[i] · factor + from[i].
void scale_and_add(std::span<float> into, float factor, std::span<const float> from);

/// A sum of several vectors, which goes to several places.
struct WeightedSum {
  std::span<float* const> into;           ///< which may be among the addends
  std::span<const float* const> addends;  ///< added in this order
  std::span<const float> factors;         ///< one an addend
  std::size_t count = 0;                  ///< values of each vector
};

/// into[p][i] = Σ_k factors[k] · addends[k][i], for all p.
void weighted_sum(const WeightedSum& sum);

/// values[i] *= factor. Where that is 1, memory is not touched.
void scale(std::span<float> values, float factor);

/// The instruction set that these took, as Highway calls it: "AVX3".
const char* kernel_target();

}  // namespace syncopate
