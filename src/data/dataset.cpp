#include "data/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>

#include "base/errors.hpp"
#include "data/idx.hpp"

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
  names.push_back(synthetic);
  return names;
}

/// The files of a dataset; null for the one that needs none. Errors: ConfigError, for an unknown
/// name.
const IdxDataset* files_of(const std::string& name) {
  const auto* const found = std::ranges::find(idx_datasets, name, &IdxDataset::name);
  if (found != std::end(idx_datasets)) {
    return found;
  }
  if (name == synthetic) {
    return nullptr;
  }
  throw ConfigError(
      fmt::format("unknown dataset '{}': expected one of {}", name, fmt::join(all_names(), ", ")));
}

std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& file,
                                const char* remedy) {
  std::error_code failure;
  for (const char* suffix : {"", ".gz"}) {
    auto path = folder / (file + suffix);
    if (std::filesystem::exists(path, failure)) {
      return path;
    }
  }
  const bool there = std::filesystem::is_directory(folder, failure);
  refuse(folder, {fmt::format("{0} or {0}.gz in this folder", file),
                  there ? "neither" : "no such folder", remedy});
}

/// More samples than this would take gigabytes in each worker.
constexpr std::uint32_t most_samples = 1U << 22U;

void check_shape(const std::filesystem::path& path, const std::vector<std::uint32_t>& images,
                 const SampleShape& shape) {
  if (images[1] != shape.height || images[2] != shape.width) {
    refuse(path, {fmt::format("images of {} × {}", shape.height, shape.width),
                  fmt::format("{} × {}", images[1], images[2]),
                  "check that the folder holds this dataset"});
  }
  if (images[0] > most_samples) {
    refuse(path, {fmt::format("at most {} images", most_samples), fmt::format("{}", images[0]),
                  "use a part of them"});
  }
}

/// Refuses headers that contradict the dataset or each other, before anything is unpacked.
void check_headers(const std::filesystem::path& images_path,
                   const std::filesystem::path& labels_path, const SampleShape& shape) {
  const std::vector<std::uint32_t> labels = read_idx_header(labels_path, 1);
  const std::vector<std::uint32_t> images = read_idx_header(images_path, 3);
  check_shape(images_path, images, shape);
  if (labels[0] != images[0]) {
    refuse(labels_path,
           {fmt::format("{} labels, one an image", images[0]), fmt::format("{}", labels[0]),
            "check that both files are of the same set"});
  }
}

void check_labels(const std::filesystem::path& path, const IdxArray& labels,
                  std::uint32_t classes) {
  const auto wrong =
      std::ranges::find_if(labels.values, [&](std::uint8_t label) { return label >= classes; });
  if (wrong != labels.values.end()) {
    refuse(path,
           {fmt::format("labels from 0 to {}", classes - 1),
            fmt::format("{} at sample {}", *wrong, wrong - labels.values.begin()), fetch_again});
  }
}

/// Reads the set whose files begin with `prefix`: "train" or "t10k".
ImageSet load_set(const IdxDataset& kind, const std::filesystem::path& folder,
                  const std::string& prefix) {
  const auto images_path = find_file(folder, prefix + "-images-idx3-ubyte", kind.remedy);
  const auto labels_path = find_file(folder, prefix + "-labels-idx1-ubyte", kind.remedy);
  check_headers(images_path, labels_path, kind.shape);
  auto labels = read_idx(labels_path, 1);
  auto images = read_idx(images_path, 3);
  check_labels(labels_path, labels, kind.classes);
  return {kind.shape, std::move(images.values), std::move(labels.values)};
}

Dataset load_idx_dataset(const IdxDataset& kind, const std::filesystem::path& chosen, Which which) {
  const std::filesystem::path folder = chosen.empty() ? kind.default_folder : chosen;
  if (folder.empty()) {
    throw DataError(fmt::format("{}: expected a folder, found none; {}", kind.name, kind.remedy));
  }
  const ImageSet none{kind.shape, {}, {}};
  return {kind.name,
          kind.classes,
          kind.mean,
          kind.standard_deviation,
          which == Which::test ? none : load_set(kind, folder, "train"),
          which == Which::train ? none : load_set(kind, folder, "t10k")};
}

/// The normalised value of each pixel value.
std::array<float, 256> normalisation(const Dataset& dataset) {
  std::array<float, 256> normalised{};
  for (std::size_t pixel = 0; pixel < normalised.size(); ++pixel) {
    const float scaled = static_cast<float>(pixel) / 255.0F;
    normalised[pixel] = (scaled - dataset.mean) / dataset.standard_deviation;
  }
  return normalised;
}

}  // namespace

std::span<const std::string> dataset_names() {
  static const std::vector<std::string> names = all_names();
  return names;
}

bool reads_files(const std::string& name) {
  return files_of(name) != nullptr;
}

Dataset load_dataset(const std::string& name, const std::filesystem::path& folder, Which which) {
  const IdxDataset* const files = files_of(name);
  return files == nullptr ? make_synthetic(which) : load_idx_dataset(*files, folder, which);
}

void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch) {
  const auto normalised = normalisation(dataset);
  const std::size_t values = set.shape.values();
  batch.shape = set.shape;
  batch.features.resize(indices.size() * values);
  batch.labels.resize(indices.size());
  auto feature = batch.features.begin();
  auto label = batch.labels.begin();
  for (const std::uint32_t index : indices) {
    if (index >= set.samples()) {
      throw InternalError(fmt::format("sample {} of {} was asked for", index, set.samples()));
    }
    const auto pixels = std::span(set.pixels).subspan(index * values, values);
    feature = std::ranges::transform(pixels, feature, [&](std::uint8_t pixel) {
                return normalised[pixel];
              }).out;
    *label++ = set.labels[index];
  }
}

}  // namespace syncopate
