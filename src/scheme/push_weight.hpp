#pragma once

#include <cstdint>

namespace syncopate {

/// How much a gradient counts that is an update of its own, or that a server averages with others: as
/// many samples as it is the mean of, so that every sample counts the same, or 1.
struct PushWeight {
  double unit = 0;  ///< samples that weigh 1; 0: every gradient does, however many it has

  float of(std::uint64_t samples) const {
    return unit > 0 ? static_cast<float>(static_cast<double>(samples) / unit) : 1;
  }
};

}  // namespace syncopate
