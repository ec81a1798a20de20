#pragma once

#include <span>

namespace syncopate {

/// Whether no value is infinite or NaN. Vectorised for the CPU at hand (Highway); looks no further
/// than the block of 16 KiB in which it finds one.
bool all_finite(std::span<const float> values);

}  // namespace syncopate
