#pragma once

#include <cstddef>
#include <memory>

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

}  // namespace syncopate
