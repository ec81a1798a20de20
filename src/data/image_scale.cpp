#include <algorithm>
#include <cmath>

#include "data/image_file.hpp"

namespace syncopate {
namespace {

/// The part of a side that is scaled.
struct Section {
  double begin = 0;
  double length = 0;
};

/// The pixels of a line that make one pixel of the scaled line.
struct Taps {
  std::size_t first = 0;
  std::vector<float> weights;  ///< their sum is 1
};

/// `size` pixels from a section of a line of `length` pixels.
std::vector<Taps> taps_of(const Section& section, std::size_t length, std::size_t size) {
  const double step = section.length / static_cast<double>(size);
  const double reach = std::max(step, 1.0);
  std::vector<Taps> taps(size);
  for (std::size_t at = 0; at < size; ++at) {
    const double centre = section.begin + (static_cast<double>(at) + 0.5) * step;
    const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(centre - reach)));
    const auto end = std::min(length, static_cast<std::size_t>(std::ceil(centre + reach)));
    double sum = 0;
    for (std::size_t pixel = first; pixel < end; ++pixel) {
      const double distance = std::abs(static_cast<double>(pixel) + 0.5 - centre) / reach;
      const double weight = std::max(0.0, 1 - distance);
      taps[at].weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    taps[at].first = first;
    for (float& weight : taps[at].weights) {
      weight /= static_cast<float>(sum);
    }
  }
  return taps;
}

/// Scales a line whose pixels lie `stride` apart.
template <class Value>
void scale_line(std::span<const Value> line, std::size_t stride, const std::vector<Taps>& taps,
                std::span<float> into, std::size_t into_stride) {
  for (std::size_t at = 0; at < taps.size(); ++at) {
    float sum = 0;
    for (std::size_t tap = 0; tap < taps[at].weights.size(); ++tap) {
      const auto value = static_cast<float>(line[(taps[at].first + tap) * stride]);
      sum += taps[at].weights[tap] * value;
    }
    into[at * into_stride] = sum;
  }
}

/// Scales one channel: its rows first, then the columns of the result.
void scale_plane(std::span<const std::uint8_t> plane, std::size_t width,
                 const std::vector<Taps>& rows, const std::vector<Taps>& columns,
                 std::span<std::uint8_t> into) {
  const std::size_t height = plane.size() / width;
  const std::size_t new_width = columns.size();
  std::vector<float> narrowed(height * new_width);
  for (std::size_t y = 0; y < height; ++y) {
    scale_line(plane.subspan(y * width, width), 1, columns,
               std::span(narrowed).subspan(y * new_width), 1);
  }
  std::vector<float> result(rows.size() * new_width);
  for (std::size_t x = 0; x < new_width; ++x) {
    scale_line(std::span<const float>(narrowed).subspan(x), new_width, rows,
               std::span(result).subspan(x), new_width);
  }
  std::ranges::transform(result, into.begin(), [](float value) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F)));
  });
}

}  // namespace

Image scaled(const Image& image, std::uint32_t height, std::uint32_t width) {
  if (image.shape.height == height && image.shape.width == width) {
    return image;
  }
  const double step = std::min(static_cast<double>(image.shape.height) / height,
                               static_cast<double>(image.shape.width) / width);
  const auto centred = [step](std::uint32_t length, std::uint32_t size) {
    return Section{.begin = (length - step * size) / 2, .length = step * size};
  };
  const auto rows = taps_of(centred(image.shape.height, height), image.shape.height, height);
  const auto columns = taps_of(centred(image.shape.width, width), image.shape.width, width);
  const std::size_t plane = std::size_t{image.shape.height} * image.shape.width;
  Image result{{image.shape.channels, height, width}, {}};
  result.pixels.resize(result.shape.values());
  for (std::size_t channel = 0; channel < image.shape.channels; ++channel) {
    scale_plane(std::span(image.pixels).subspan(channel * plane, plane), image.shape.width, rows,
                columns, std::span(result.pixels).subspan(channel * height * width));
  }
  return result;
}

}  // namespace syncopate
