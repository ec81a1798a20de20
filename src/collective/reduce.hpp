#pragma once

#include <span>

namespace syncopate {

/// into[i] += from[i]. Both have the same length. Vectorised for the CPU at hand (Highway).
void add(std::span<float> into, std::span<const float> from);

/// into[i] = into[i] · factor + from[i].
void scale_and_add(std::span<float> into, float factor, std::span<const float> from);

/// into[i] = Σ_k factors[k] · addends[k][i], in the order of k. `into` may be one of the addends.
void weighted_sum(std::span<float> into, std::span<const float* const> addends,
                  std::span<const float> factors);

/// values[i] *= factor.
void scale(std::span<float> values, float factor);

}  // namespace syncopate
