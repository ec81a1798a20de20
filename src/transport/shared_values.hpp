#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "transport/shared_memory.hpp"

namespace syncopate {

/// `count` floats, zero: in memory that the other nodes of the host reach, where there is some, so that
/// to sum them or to hand them over copies nothing. Errors: DataError, with the size needed.
inline std::shared_ptr<float> make_values(SharedMemory* memory, std::size_t count) {
  if (memory == nullptr) {
    const auto own = std::make_shared<float[]>(count);
    return {own, own.get()};
  }
  std::shared_ptr<std::byte> bytes = memory->allocate(count * sizeof(float));
  auto* const values = reinterpret_cast<float*>(bytes.get());
  return {std::move(bytes), values};
}

/// Values of `make_values` whose number is told later. `memory` may be null, and outlives this.
class SharedValues {
 public:
  explicit SharedValues(SharedMemory* memory) : memory_(memory) {}

  /// Room for `count` values; where there was for as many, they stay. Errors: as `make_values`.
  void resize(std::size_t count) {
    if (count != all_.size()) {
      values_ = make_values(memory_, count);
      all_ = {values_.get(), count};
    }
  }

  std::span<float> all() const { return all_; }

 private:
  SharedMemory* memory_;
  std::shared_ptr<float> values_;
  std::span<float> all_;
};

}  // namespace syncopate
