#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace syncopate {

/// Everything that an optimizer remembers between steps, for checkpoints.
struct OptimizerState {
  std::map<std::string, std::vector<float>> slots;  ///< "momentum_buffer": one value per parameter
  std::map<std::string, std::int64_t> counters;     ///< "step"
};

}  // namespace syncopate
