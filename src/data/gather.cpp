#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/errors.hpp"
#include "data/dataset.hpp"

namespace syncopate {
namespace {

/// The normalised value of each pixel value, one table per channel.
using Normalisation = std::vector<std::array<float, 256>>;

std::array<float, 256> normalised_pixels(float mean, float standard_deviation) {
  std::array<float, 256> normalised{};
  for (std::size_t pixel = 0; pixel < normalised.size(); ++pixel) {
    const float scaled = static_cast<float>(pixel) / 255.0F;
    normalised[pixel] = (scaled - mean) / standard_deviation;
  }
  return normalised;
}

Normalisation normalisation_of(const Dataset& dataset, std::uint32_t channels) {
  if (dataset.mean.empty() && dataset.standard_deviation.empty()) {
    return Normalisation(channels, normalised_pixels(0, 1));
  }
  if (dataset.mean.size() != channels || dataset.standard_deviation.size() != channels) {
    throw InternalError(fmt::format("{} means and {} standard deviations for {} channels",
                                    dataset.mean.size(), dataset.standard_deviation.size(),
                                    channels));
  }
  Normalisation tables;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    tables.push_back(normalised_pixels(dataset.mean[channel], dataset.standard_deviation[channel]));
  }
  return tables;
}

/// The pixels of a sample. Errors: InternalError if the set has no such sample.
std::span<const std::uint8_t> image_of(const ImageSet& set, std::uint32_t index) {
  if (index >= set.samples()) {
    throw InternalError(fmt::format("sample {} of {} was asked for", index, set.samples()));
  }
  const std::size_t values = set.shape.values();
  return std::span(set.pixels).subspan(index * values, values);
}

void write_features(const Normalisation& tables, std::span<const std::uint8_t> image,
                    std::span<float> into) {
  const std::size_t plane = image.size() / tables.size();
  for (std::size_t channel = 0; channel < tables.size(); ++channel) {
    const auto& table = tables[channel];
    std::ranges::transform(image.subspan(channel * plane, plane),
                           into.subspan(channel * plane, plane).begin(),
                           [&](std::uint8_t pixel) { return table[pixel]; });
  }
}

/// `image_at` returns the pixels of the sample with an index.
template <class ImageAt>
void gather_images(const Dataset& dataset, const ImageSet& set,
                   std::span<const std::uint32_t> indices, const ImageAt& image_at, Batch& batch) {
  const Normalisation tables = normalisation_of(dataset, set.shape.channels);
  const std::size_t values = set.shape.values();
  batch.shape = set.shape;
  batch.features.resize(indices.size() * values);
  batch.labels.resize(indices.size());
  batch.weights.resize(set.weights.empty() ? 0 : indices.size());
  for (std::size_t at = 0; at < indices.size(); ++at) {
    write_features(tables, image_at(indices[at]),
                   std::span(batch.features).subspan(at * values, values));
    batch.labels[at] = set.labels[indices[at]];
    if (!set.weights.empty()) {
      batch.weights[at] = set.weights[indices[at]];
    }
  }
}

}  // namespace

void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            Batch& batch) {
  gather_images(
      dataset, set, indices, [&](std::uint32_t index) { return image_of(set, index); }, batch);
}

void gather(const Dataset& dataset, const ImageSet& set, std::span<const std::uint32_t> indices,
            const std::function<ImageChange(std::uint32_t)>& change_of, Batch& batch) {
  std::vector<std::uint8_t> changed(set.shape.values());
  const auto changed_image = [&](std::uint32_t index) {
    apply_change(change_of(index), set.shape, image_of(set, index), changed);
    return std::span<const std::uint8_t>(changed);
  };
  gather_images(dataset, set, indices, changed_image, batch);
}

}  // namespace syncopate
