#pragma once

#include <span>

namespace syncopate {

/// Gives a worker's buffers the mean over workers to which it contributed earlier: what they have
/// changed by since then is added to the mean, but no value goes beyond the mean and its present.
///
/// Without that bound a change counts in full that the running statistics, which are means over the
/// last steps, forget again: a variance would become negative. Buffers that have not changed since
/// they were contributed become the mean to the last bit. A value that is not finite stays one.
///
/// Shapes: three vectors of one length.
void take_late_mean(std::span<float> buffers, std::span<const float> contributed,
                    std::span<const float> mean);

}  // namespace syncopate
