#pragma once

#include <cstdint>

#include "data/dataset.hpp"

namespace syncopate::test {

/// `samples` images of one pixel; sample k has the label k.
inline Dataset numbered(std::uint8_t samples) {
  Dataset dataset;
  dataset.name = "numbered";
  dataset.classes = samples;
  dataset.train.shape = {1, 1, 1};
  for (std::uint8_t sample = 0; sample < samples; ++sample) {
    dataset.train.pixels.push_back(sample);
    dataset.train.labels.push_back(sample);
  }
  return dataset;
}

}  // namespace syncopate::test
