#include "scheme/gradient_set.hpp"

#include <algorithm>

namespace syncopate {

GradientSet::GradientSet(std::span<const std::uint8_t> flags) : has_(flags.size()) {
  std::transform(flags.begin(), flags.end(), has_.begin(),
                 [](std::uint8_t flag) { return flag != 0; });
}

GradientSet::GradientSet(std::size_t tensors, std::span<const std::byte> packed) : has_(tensors) {
  for (std::size_t i = 0; i < tensors; ++i) {
    has_[i] = (packed[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
  }
}

void GradientSet::add(const GradientSet& other) {
  has_.resize(other.has_.size());
  for (std::size_t i = 0; i < has_.size(); ++i) {
    has_[i] = has_[i] || other.has_[i];
  }
}

std::vector<std::uint8_t> GradientSet::flags() const {
  return {has_.begin(), has_.end()};
}

std::vector<std::byte> GradientSet::packed() const {
  std::vector<std::byte> packed(packed_bytes(has_.size()));
  for (std::size_t i = 0; i < has_.size(); ++i) {
    packed[i / 8] |= std::byte{has_[i]} << (i % 8);
  }
  return packed;
}

}  // namespace syncopate
