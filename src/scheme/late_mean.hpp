#pragma once

#include <span>

namespace syncopate {

/// Replaces a worker's buffers by the mean to which the worker contributed earlier, plus the change
/// of the buffers since then. Each result is clamped between the mean and the present value.
///
/// Without the clamp a variance could become negative: running statistics are means over the last
/// steps and forget old changes, but the sum counts a change in full. Buffers that have not changed
/// since they were contributed become the mean to the last bit. A value that is not finite stays
/// so.
///
/// Shapes: three vectors of one length.
void take_late_mean(std::span<float> buffers, std::span<const float> contributed,
                    std::span<const float> mean);

}  // namespace syncopate
