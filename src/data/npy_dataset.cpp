#include "data/npy_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>

#include "data/idx.hpp"
#include "data/image_set.hpp"
#include "data/npy.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr const char* training_images = "train_images.npy";
constexpr std::uint64_t most_channels = 4;
constexpr std::uint64_t most_of_a_side = 1U << 14U;

/// The place of channels in an array of images.
enum class Layout { channels_first, channels_last };

struct ImagesHeader {
  std::uint64_t samples = 0;
  SampleShape shape;
  Layout layout = Layout::channels_first;
};

std::string shown(const NpyHeader& header) {
  return fmt::format("{} of shape ({})", header.type_name(), fmt::join(header.shape, ", "));
}

/// Channels, height and width, and their order; empty for a shape that images do not have.
std::optional<ImagesHeader> images_of_shape(const std::vector<std::uint64_t>& shape) {
  const bool grey = shape.size() == 3;
  if (!grey && shape.size() != 4) {
    return std::nullopt;
  }
  const bool first = !grey && shape[1] <= most_channels;
  const bool last = !grey && !first && shape[3] <= most_channels;
  if (!grey && !first && !last) {
    return std::nullopt;
  }
  const std::size_t height = first ? 2 : 1;
  if (shape[height] > most_of_a_side || shape[height + 1] > most_of_a_side) {
    return std::nullopt;
  }
  const std::uint64_t channels = grey ? 1 : first ? shape[1] : shape[3];
  return ImagesHeader{
      .samples = shape[0],
      .shape = {static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(shape[height]),
                static_cast<std::uint32_t>(shape[height + 1])},
      .layout = last ? Layout::channels_last : Layout::channels_first};
}

ImagesHeader check_images(const fs::path& path) {
  const NpyHeader header = check_npy(path);
  const auto images = images_of_shape(header.shape);
  if (header.kind != 'u' || header.item_bytes != 1 || !images) {
    refuse(path, {fmt::format("images, uint8 of shape (N, H, W), (N, C, H, W) or (N, H, W, C) with "
                              "at most {} channels and {} pixels a side",
                              most_channels, most_of_a_side),
                  shown(header), "convert the array"});
  }
  check_size(path, images->samples, images->shape);
  return *images;
}

/// One image with its channels first.
void append_channels_first(std::string_view image, const SampleShape& shape,
                           std::vector<std::uint8_t>& into) {
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    for (std::size_t at = channel; at < image.size(); at += shape.channels) {
      into.push_back(static_cast<std::uint8_t>(image[at]));
    }
  }
}

ImageSet read_images(const fs::path& path) {
  const ImagesHeader header = check_images(path);
  const NpyArray array = read_npy(path);
  ImageSet set{header.shape, {}, {}};
  if (header.layout == Layout::channels_first) {
    set.pixels.assign(array.values.begin(), array.values.end());
    return set;
  }
  set.pixels.reserve(array.values.size());
  const std::size_t values = header.shape.values();
  for (std::uint64_t sample = 0; sample < header.samples; ++sample) {
    append_channels_first(std::string_view(array.values).substr(sample * values, values),
                          header.shape, set.pixels);
  }
  return set;
}

/// The value at `index`; below 0 if the file's number is negative or beyond int64.
std::int64_t whole_value(const NpyArray& array, std::size_t index) {
  const std::size_t bytes = array.header.item_bytes;
  std::uint64_t bits = 0;
  std::memcpy(&bits, array.values.data() + index * bytes, bytes);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
  const auto number = static_cast<std::int64_t>(bits << unused);
  return array.header.kind == 'u' ? static_cast<std::int64_t>(bits) : number >> unused;
}

bool is_column(const NpyHeader& header, std::uint64_t samples) {
  const auto& shape = header.shape;
  return (shape.size() == 1 || (shape.size() == 2 && shape[1] == 1)) && shape[0] == samples;
}

std::vector<Label> read_labels(const fs::path& path, std::uint64_t samples) {
  const NpyHeader header = check_npy(path);
  if ((header.kind != 'u' && header.kind != 'i') || !is_column(header, samples)) {
    refuse(path, {fmt::format("{} labels, whole numbers of shape (N)", samples), shown(header),
                  "check that images and labels are of the same set"});
  }
  const NpyArray array = read_npy(path);
  constexpr std::int64_t most = std::numeric_limits<Label>::max();
  std::vector<Label> labels(samples);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::int64_t label = whole_value(array, sample);
    if (label < 0 || label > most) {
      refuse(path, {fmt::format("labels from 0 to {}", most),
                    fmt::format("{} at sample {}", label, sample), "number the classes from 0 on"});
    }
    labels[sample] = static_cast<Label>(label);
  }
  return labels;
}

double weight_at(const NpyArray& array, std::size_t index) {
  if (array.header.item_bytes == sizeof(float)) {
    float value = 0;
    std::memcpy(&value, array.values.data() + index * sizeof value, sizeof value);
    return double{value};
  }
  double value = 0;
  std::memcpy(&value, array.values.data() + index * sizeof value, sizeof value);
  return value;
}

std::vector<float> read_weights(const fs::path& path, std::uint64_t samples) {
  const NpyHeader header = check_npy(path);
  if (header.kind != 'f' || header.item_bytes < sizeof(float) || !is_column(header, samples)) {
    refuse(path, {fmt::format("{} weights, float32 or float64 of shape (N)", samples),
                  shown(header), "check that images and weights are of the same set"});
  }
  const NpyArray array = read_npy(path);
  std::vector<float> weights(samples);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const double weight = weight_at(array, sample);
    // A sum of all weights stays within a float.
    constexpr double most = 1e30;
    if (!(weight >= 0) || weight > most) {
      refuse(path, {fmt::format("weights from 0 to {:g}", most),
                    fmt::format("{} at sample {}", weight, sample), "correct this weight"});
    }
    weights[sample] = static_cast<float>(weight);
  }
  if (std::ranges::max(weights) == 0) {
    refuse(path, {"a weight above 0", "none", "correct the weights"});
  }
  return weights;
}

ImageSet read_pair(const fs::path& folder, const std::string& set_name) {
  ImageSet set = read_images(folder / (set_name + "_images.npy"));
  set.labels =
      read_labels(folder / (set_name + "_labels.npy"), set.pixels.size() / set.shape.values());
  return set;
}

void expect_same_shape(const fs::path& path, const SampleShape& train, const SampleShape& test) {
  const auto text = [](const SampleShape& shape) {
    return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
  };
  if (!(train == test)) {
    refuse(path, {fmt::format("images of {}, as the training images", text(train)), text(test),
                  "convert the array"});
  }
}

}  // namespace

bool holds_npy_dataset(const fs::path& folder) {
  std::error_code failure;
  return fs::exists(folder / training_images, failure);
}

Dataset load_npy_dataset(const fs::path& folder, Which which) {
  Dataset dataset{.name = folder.string(),
                  .classes = 0,
                  .mean = {},
                  .standard_deviation = {},
                  .train = read_pair(folder, "train"),
                  .test = read_pair(folder, "test")};
  expect_same_shape(folder / "test_images.npy", dataset.train.shape, dataset.test.shape);
  dataset.classes = std::uint32_t{std::ranges::max(dataset.train.labels)} + 1;
  check_labels(folder / "test_labels.npy", dataset.test.labels, dataset.classes);
  const fs::path weights = folder / "train_weights.npy";
  if (std::error_code failure; fs::exists(weights, failure)) {
    dataset.train.weights = read_weights(weights, dataset.train.samples());
  }
  measure_channels(dataset);
  keep_only(which, dataset);
  return dataset;
}

}  // namespace syncopate
