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

/// Labelled images in memory, one byte a value.
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
  /// Of the training set's values, scaled to [0, 1], one a channel. Empty: 0 and 1.
  std::vector<float> mean;
  std::vector<float> standard_deviation;
  ImageSet train;
  ImageSet test;
  std::vector<std::string> class_names = {};  ///< by label; empty where classes are numbers alone
  std::uint64_t passed_over = 0;              ///< files that file managers left among the images
};

/// The sets to load: a worker needs `train` alone, an evaluator `test` alone.
enum class Which { both, train, test };

/// The names that `--data` takes, in the order of help texts.
std::span<const std::string> dataset_names();

/// Whether a dataset is read from files, which `--data-dir` can name. Errors: ConfigError, for an
/// unknown name.
bool reads_files(const std::string& name);

/// Whether the value of `--data` is the path of a folder, and not the name of a dataset: it has a
/// slash.
bool is_data_folder(std::string_view data);

/// Loads a dataset by name, or from the folder whose path `name` is.
///
/// `fashion-mnist`, `mnist`: `folder` holds the IDX files, gzipped or not (an unpacked one is
/// preferred); empty means the folder where Debian's package of that dataset puts them.
/// `cifar10`, `cifar100`: see `load_cifar`. `synthetic` needs no files: ten classes of noisy 28×28
/// patterns, always the same. A path: see `load_image_folder`, to which `image_size` belongs, and
/// `load_npy_dataset`. A set that was not asked for has the shape of the other and no samples;
/// everything else is the same whichever was asked for.
///
/// Errors: ConfigError, for an unknown name, and for an image size that has no effect; DataError,
/// for a file that is missing (what to install or to pass), damaged, of another kind or shape, of
/// another count than its partner, or with a label out of range: one line each, which names the
/// file.
Dataset load_dataset(const std::string& name, const std::filesystem::path& folder,
                     Which which = Which::both, std::uint32_t image_size = 0);

/// Ten classes of 28×28 images that need no files: a few soft blobs per class, shifted, dimmed and
/// covered with noise sample by sample. 10,000 training and 2,000 test samples, classes equally
/// often, always the same. A nearest-mean classifier gets about eight in ten right.
Dataset make_synthetic(Which which);

/// Copies the samples `indices` of `set` into `batch`, normalised by the dataset's mean and
/// standard deviation of each channel: (pixel / 255 − mean) / standard deviation. Reuses the
/// batch's memory.
/// Errors: InternalError, for an index that the set does not have, and for figures of another
///         number of channels.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch);

/// The same with every image changed as `change_of` says for its index, before it is normalised.
void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            const std::function<ImageChange(std::uint32_t)>& change_of, Batch& batch);

}  // namespace syncopate
