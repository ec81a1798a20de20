#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/batch.hpp"

namespace syncopate {

/// Labelled images in memory, one byte a value.
struct ImageSet {
  SampleShape shape;
  std::vector<std::uint8_t> pixels;  ///< [samples, channels, height, width]
  std::vector<std::uint8_t> labels;  ///< [samples], each below the dataset's `classes`

  std::size_t samples() const { return labels.size(); }
};

/// A training set and a test set of the same shape.
struct Dataset {
  std::string name;
  std::uint32_t classes = 0;
  float mean = 0;                ///< of the training set's values, scaled to [0, 1]
  float standard_deviation = 1;  ///< likewise
  ImageSet train;
  ImageSet test;
};

/// What `--data` accepts, in the order in which help texts list it.
std::span<const std::string> dataset_names();

/// Loads a dataset by name: `fashion-mnist`, `mnist` or `synthetic`.
///
/// `folder` holds the four IDX files, gzipped or not; empty means the place where Debian's package
/// of that dataset puts them. `synthetic` needs no files: ten classes of noisy 28×28 patterns, the
/// same for every seed.
///
/// Errors: ConfigError, for an unknown name; DataError, for a file that is missing (what to install
/// or to pass), truncated, of another kind, of another count than its partner, or with a label out
/// of range: one line each, which names the file.
Dataset load_dataset(const std::string& name, const std::filesystem::path& folder);

/// Copies the samples `indices` of `set` into `batch`, normalised by the dataset's mean and standard
/// deviation. Reuses the batch's memory.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch);

}  // namespace syncopate
