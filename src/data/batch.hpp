#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace syncopate {

/// A class of a dataset, numbered from 0.
using Label = std::uint16_t;

/// The shape of one sample, channels first.
struct SampleShape {
  std::uint32_t channels = 1;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  std::size_t values() const { return std::size_t{channels} * height * width; }
  friend bool operator==(const SampleShape&, const SampleShape&) = default;
};

/// Samples ready for a forward pass: [samples, channels, height, width], normalised, and labels.
/// With weights, the loss of the batch is Σ w l / Σ w instead of the mean over its samples.
struct Batch {
  SampleShape shape;
  std::vector<float> features;
  std::vector<std::int64_t> labels;
  std::vector<float> weights = {};  ///< one per sample; empty: all 1

  std::size_t samples() const { return labels.size(); }
};

/// The position of a worker in its part of the training data.
struct DataPosition {
  std::uint64_t batch = 0;  ///< finished mini-batches
  std::uint64_t taken = 0;  ///< samples taken from the next mini-batch

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

}  // namespace syncopate
