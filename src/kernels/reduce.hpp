#pragma once

#include <cstddef>
#include <span>

namespace syncopate {

/// Kernels over vectors of the same length. Highway vectorises them for the CPU that runs them.

/// into[i] += from[i].
void add(std::span<float> into, std::span<const float> from);

/// into[i] = into[i] · factor + from[i].
void scale_and_add(std::span<float> into, float factor, std::span<const float> from);

/// A weighted sum of several vectors, which is written to several outputs.
struct WeightedSum {
  std::span<float* const> into;           ///< the outputs; they may be among the addends
  std::span<const float* const> addends;  ///< added in this order
  std::span<const float> factors;         ///< one per addend
  std::size_t count = 0;                  ///< values of each vector
};

/// into[p][i] = Σ_k factors[k] · addends[k][i], for all p.
void weighted_sum(const WeightedSum& sum);

/// values[i] *= factor. A factor of 1 does not touch memory.
void scale(std::span<float> values, float factor);

/// True if no value is infinite or NaN. Stops after the block of 16 KiB in which it finds one.
bool all_finite(std::span<const float> values);

/// The instruction set that these kernels use, as Highway names it: "AVX3".
const char* kernel_target();

}  // namespace syncopate
