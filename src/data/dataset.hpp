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
  float standard_deviation = 1;  ///< of the training set's values
  ImageSet train;
  ImageSet test;
};

/// The sets to load: a worker needs `train` alone, an evaluator `test` alone.
enum class Which { both, train, test };

/// The names that `--data` takes, in the order of help texts.
std::span<const std::string> dataset_names();

/// Whether a dataset is read from files, which `--data-dir` can name. Errors: ConfigError, for an
/// unknown name.
bool reads_files(const std::string& name);

/// Loads a dataset by name: `fashion-mnist`, `mnist` or `synthetic`.
///
/// `folder` holds the IDX files, gzipped or not (an unpacked one is preferred); empty means the
/// folder where Debian's package of that dataset puts them. `synthetic` needs no files: ten classes
/// of noisy 28×28 patterns, always the same. A set that was not asked for has the shape of the
/// other and no samples; everything else is the same whichever was asked for.
///
/// Errors: ConfigError, for an unknown name; DataError, for a file that is missing (what to install
/// or to pass), damaged, of another kind or shape, of another count than its partner, or with a
/// label out of range: one line each, which names the file.
Dataset load_dataset(const std::string& name, const std::filesystem::path& folder,
                     Which which = Which::both);

/// Ten classes of 28×28 images that need no files: a few soft blobs per class, shifted, dimmed and
/// covered with noise sample by sample. 10,000 training and 2,000 test samples, classes equally
/// often, always the same. A nearest-mean classifier gets about eight in ten right.
Dataset make_synthetic(Which which);

/// Copies the samples `indices` of `set` into `batch`, normalised by the dataset's mean and
/// standard deviation: (pixel / 255 − mean) / standard deviation. Reuses the batch's memory.
/// Errors: InternalError, for an index that the set does not have.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch);

}  // namespace syncopate
