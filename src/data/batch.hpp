#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace syncopate {

/// The shape of one sample, channels first.
struct SampleShape {
  std::uint32_t channels = 1;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  std::size_t values() const { return std::size_t{channels} * height * width; }
  friend bool operator==(const SampleShape&, const SampleShape&) = default;
};

/// Samples ready for a forward pass: [samples, channels, height, width], normalised, and labels.
struct Batch {
  SampleShape shape;
  std::vector<float> features;
  std::vector<std::int64_t> labels;

  std::size_t samples() const { return labels.size(); }
};

}  // namespace syncopate
