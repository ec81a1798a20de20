#pragma once

#include <cstdint>

namespace syncopate {

/// How far a worker has come in its part of the training data.
struct DataPosition {
  std::uint64_t batch = 0;  ///< mini-batches that it is done with
  std::uint64_t taken = 0;  ///< samples of the next one

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

}  // namespace syncopate
