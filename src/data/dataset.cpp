#include "data/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/errors.hpp"
#include "data/cifar.hpp"
#include "data/idx.hpp"
#include "data/image_folder.hpp"
#include "data/image_set.hpp"
#include "data/npy_dataset.hpp"

namespace syncopate {
namespace {

/// A dataset of four IDX files as they are distributed.
struct IdxDataset {
  std::string name;
  std::uint32_t classes;
  SampleShape shape;
  float mean;
  float standard_deviation;
  const char* default_folder;  ///< empty where no Debian package holds the files
  const char* remedy;          ///< when the files are missing
};

const IdxDataset idx_datasets[] = {
    {.name = "fashion-mnist",
     .classes = 10,
     .shape = {1, 28, 28},
     .mean = 0.2860F,
     .standard_deviation = 0.3530F,
     .default_folder = "/usr/share/datasets/fashion-mnist",
     .remedy = "install Debian's package dataset-fashion-mnist, or pass the folder of its files as "
               "--data-dir"},
    {.name = "mnist",
     .classes = 10,
     .shape = {1, 28, 28},
     .mean = 0.1307F,
     .standard_deviation = 0.3081F,
     .default_folder = "",
     .remedy = "no Debian package holds MNIST: fetch its four files and pass their folder as "
               "--data-dir"}};

const std::string synthetic = "synthetic";

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  std::ranges::transform(idx_datasets, std::back_inserter(names), &IdxDataset::name);
  std::ranges::copy(cifar_names(), std::back_inserter(names));
  names.push_back(synthetic);
  return names;
}

/// Null for a dataset of another format.
const IdxDataset* idx_dataset(const std::string& name) {
  const auto* const found = std::ranges::find(idx_datasets, name, &IdxDataset::name);
  return found == std::end(idx_datasets) ? nullptr : found;
}

bool is_cifar(const std::string& name) {
  return std::ranges::find(cifar_names(), name) != cifar_names().end();
}

/// Errors: ConfigError if no dataset has this name.
void expect_name(const std::string& name) {
  if (std::ranges::find(dataset_names(), name) == dataset_names().end()) {
    throw ConfigError(
        fmt::format("unknown dataset '{}': expected one of {}, or the path of a "
                    "folder, with a slash",
                    name, fmt::join(dataset_names(), ", ")));
  }
}

std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& file,
                                const char* remedy) {
  std::error_code failure;
  // Archives write "train-images.idx3-ubyte", too.
  std::string with_dot = file;
  with_dot[file.rfind("-idx")] = '.';
  for (const std::string& name : {file, with_dot}) {
    for (const char* suffix : {"", ".gz"}) {
      auto path = folder / (name + suffix);
      if (std::filesystem::exists(path, failure)) {
        return path;
      }
    }
  }
  const bool there = std::filesystem::is_directory(folder, failure);
  refuse(folder, {fmt::format("{0} or {0}.gz in this folder", file),
                  there ? "neither" : "no such folder", remedy});
}

void check_shape(const std::filesystem::path& path, const std::vector<std::uint32_t>& images,
                 const SampleShape& shape) {
  if (images[1] != shape.height || images[2] != shape.width) {
    refuse(path, {fmt::format("images of {} × {}", shape.height, shape.width),
                  fmt::format("{} × {}", images[1], images[2]),
                  "check that the folder holds this dataset"});
  }
  check_size(path, images[0], shape);
}

/// Refuses headers that contradict the dataset or each other, before anything is unpacked.
void check_headers(const std::filesystem::path& images_path,
                   const std::filesystem::path& labels_path, const SampleShape& shape) {
  const std::vector<std::uint32_t> labels = read_idx_header(labels_path, 1);
  const std::vector<std::uint32_t> images = read_idx_header(images_path, 3);
  check_shape(images_path, images, shape);
  if (labels[0] != images[0]) {
    refuse(labels_path,
           {fmt::format("{} labels, one per image", images[0]), fmt::format("{}", labels[0]),
            "check that both files are of the same set"});
  }
}

/// Reads the set whose files begin with `prefix`: "train" or "t10k".
ImageSet load_set(const IdxDataset& kind, const std::filesystem::path& folder,
                  const std::string& prefix) {
  const auto images_path = find_file(folder, prefix + "-images-idx3-ubyte", kind.remedy);
  const auto labels_path = find_file(folder, prefix + "-labels-idx1-ubyte", kind.remedy);
  check_headers(images_path, labels_path, kind.shape);
  const auto labels = read_idx(labels_path, 1);
  auto images = read_idx(images_path, 3);
  ImageSet set{kind.shape, std::move(images.values), {}};
  set.labels.assign(labels.values.begin(), labels.values.end());
  check_labels(labels_path, set.labels, kind.classes);
  return set;
}

Dataset load_idx_dataset(const IdxDataset& kind, const std::filesystem::path& chosen, Which which) {
  const std::filesystem::path folder = chosen.empty() ? kind.default_folder : chosen;
  if (folder.empty()) {
    throw DataError(fmt::format("{}: expected a folder, found none; {}", kind.name, kind.remedy));
  }
  const ImageSet none{kind.shape, {}, {}};
  return {kind.name,
          kind.classes,
          {kind.mean},
          {kind.standard_deviation},
          which == Which::test ? none : load_set(kind, folder, "train"),
          which == Which::train ? none : load_set(kind, folder, "t10k")};
}

/// Loads the user's own data from a folder, in one of the supported formats.
Dataset load_folder(const std::filesystem::path& folder, Which which, std::uint32_t image_size) {
  if (!holds_npy_dataset(folder)) {
    return load_image_folder(folder, which, image_size);
  }
  if (image_size != 0) {
    throw ConfigError(fmt::format(
        "an image size has no effect on the arrays in {}; scale them before", folder.string()));
  }
  return load_npy_dataset(folder, which);
}

}  // namespace

std::span<const std::string> dataset_names() {
  static const std::vector<std::string> names = all_names();
  return names;
}

bool is_data_folder(std::string_view data) {
  return data.find('/') != std::string_view::npos;
}

bool reads_files(const std::string& name) {
  if (is_data_folder(name)) {
    return false;
  }
  expect_name(name);
  return name != synthetic;
}

Dataset load_dataset(const std::string& name, const std::filesystem::path& folder, Which which,
                     std::uint32_t image_size) {
  if (is_data_folder(name)) {
    return load_folder(name, which, image_size);
  }
  expect_name(name);
  if (image_size != 0) {
    throw ConfigError(fmt::format("an image size has no effect on {}", name));
  }
  if (is_cifar(name)) {
    return load_cifar(name, folder, which);
  }
  const IdxDataset* const idx = idx_dataset(name);
  return idx == nullptr ? make_synthetic(which) : load_idx_dataset(*idx, folder, which);
}

}  // namespace syncopate
