#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace syncopate {

/// Returns ‖a − b‖ / ‖b‖, in float64. Both vectors must have the same length.
inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(distance / norm);
}

}  // namespace syncopate
