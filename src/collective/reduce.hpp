#pragma once

#include <span>

namespace syncopate {

/// into[i] += from[i]. Both have the same length. Vectorised for the CPU at hand (Highway).
void add(std::span<float> into, std::span<const float> from);

/// into[i] = into[i] · factor + from[i].
void scale_and_add(std::span<float> into, float factor, std::span<const float> from);

/// values[i] *= factor. Where that is 1, memory is not touched.
void scale(std::span<float> values, float factor);

}  // namespace syncopate
