#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/augmentation.hpp"
#include "data/batch.hpp"

namespace syncopate {

/// Labelled images in memory, one byte per value.
struct ImageSet {
  SampleShape shape;
  std::vector<std::uint8_t> pixels;  ///< [samples, channels, height, width]
  std::vector<Label> labels;         ///< [samples], each below the dataset's `classes`
  std::vector<float> weights = {};   ///< of samples in the loss; empty: all 1

  std::size_t samples() const { return labels.size(); }
};

/// A training set and a test set of the same shape.
struct Dataset {
  std::string name;
  std::uint32_t classes = 0;
  /// Mean and deviation of the training set's values, scaled to [0, 1], one per channel. Empty: 0
  /// and 1.
  std::vector<float> mean;
  std::vector<float> standard_deviation;
  ImageSet train;
  ImageSet test;
  std::vector<std::string> class_names = {};  ///< by label; empty if classes have only numbers
  std::uint64_t passed_over = 0;              ///< ignored files that file managers left
};

/// The sets to load: a worker needs only `train`, an evaluator only `test`.
enum class Which { both, train, test };

/// The names that `--data` takes, in the order of help texts.
std::span<const std::string> dataset_names();

/// True if a dataset is read from files, which `--data-dir` can name. Errors: ConfigError if the
/// name is unknown.
bool reads_files(const std::string& name);

/// True if the value of `--data` is the path of a folder, and not the name of a dataset: if it has
/// a slash.
bool is_data_folder(std::string_view data);

/// Loads a dataset by name, or from the folder whose path `name` is.
///
/// `fashion-mnist`, `mnist`: `folder` holds the IDX files, gzipped or not (an unpacked one is
/// preferred); empty means the folder where Debian's package of that dataset puts them. `cifar10`,
/// `cifar100`: see `load_cifar`. `synthetic` needs no files: ten classes of noisy 28×28 patterns,
/// always the same. A path: see `load_image_folder`, to which `image_size` belongs, and
/// `load_npy_dataset`. A set that `which` does not request has the shape of the other and no
/// samples; everything else does not depend on `which`.
///
/// Errors: ConfigError if the name is unknown or an image size has no effect; DataError if a file
/// is missing (with what to install or to pass), damaged, of another kind or shape, of another
/// count than its partner, or has a label out of range: one line each, which names the file.
Dataset load_dataset(const std::string& name, const std::filesystem::path& folder,
                     Which which = Which::both, std::uint32_t image_size = 0);

/// Ten classes of 28×28 images that need no files: a few soft blobs per class, shifted, dimmed and
/// covered with noise sample by sample. 10,000 training and 2,000 test samples, classes equally
/// often, always the same. A nearest-mean classifier gets about eight in ten right.
Dataset make_synthetic(Which which);

/// Copies the samples `indices` of `set` into `batch`, normalised by the dataset's mean and
/// standard deviation of each channel: (pixel / 255 − mean) / standard deviation. Reuses the
/// batch's memory.
/// Errors: InternalError if the set has no such index, or mean and deviation have another number of
///         channels.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch);

/// The same with every image changed, before it is normalised, by the result of `change_of` for its
/// index.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            const std::function<ImageChange(std::uint32_t)>& change_of, Batch& batch);

}  // namespace syncopate
