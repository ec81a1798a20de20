#include "data/exif.hpp"

#include <algorithm>
#include <string_view>

namespace syncopate {
namespace {

using Bytes = std::span<const std::uint8_t>;

/// A number of `size` bytes; 0 beyond the end.
std::uint32_t number_at(Bytes bytes, std::size_t at, std::size_t size, bool little_endian) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size && at + size <= bytes.size(); ++i) {
    number = number << 8U | bytes[at + (little_endian ? size - 1 - i : i)];
  }
  return number;
}

/// The orientation in the first table of a TIFF file, which the segment holds.
unsigned orientation_in(Bytes tiff) {
  constexpr std::uint32_t orientation_tag = 0x0112;
  constexpr std::size_t entry = 12;
  const bool little_endian = !tiff.empty() && tiff[0] == 'I';
  const std::size_t table = number_at(tiff, 4, 4, little_endian);
  const std::size_t entries = number_at(tiff, table, 2, little_endian);
  for (std::size_t i = 0; i < entries && table + 2 + (i + 1) * entry <= tiff.size(); ++i) {
    const std::size_t at = table + 2 + i * entry;
    if (number_at(tiff, at, 2, little_endian) == orientation_tag) {
      const unsigned orientation = number_at(tiff, at + 8, 2, little_endian);
      return orientation >= 1 && orientation <= 8 ? orientation : 1;
    }
  }
  return 1;
}

}  // namespace

unsigned exif_orientation(Bytes jpeg) {
  constexpr std::uint8_t app1 = 0xe1;
  constexpr std::uint8_t start_of_scan = 0xda;
  constexpr std::string_view name{"Exif\0\0", 6};
  // A segment is 0xff, its kind, its length with these two bytes, and its content.
  for (std::size_t at = 2; at + 4 <= jpeg.size() && jpeg[at] == 0xff;) {
    const std::uint8_t kind = jpeg[at + 1];
    const std::size_t length = number_at(jpeg, at + 2, 2, false);
    if (kind == start_of_scan || length < 2 || at + 2 + length > jpeg.size()) {
      return 1;
    }
    const Bytes content = jpeg.subspan(at + 4, length - 2);
    if (kind == app1 && content.size() > name.size() &&
        std::equal(name.begin(), name.end(), content.begin())) {
      return orientation_in(content.subspan(name.size()));
    }
    at += 2 + length;
  }
  return 1;
}

Image upright(Image image, unsigned orientation) {
  if (orientation <= 1) {
    return image;
  }
  const bool transposed = orientation >= 5;
  const bool rows_turned =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool columns_turned = orientation == 2 || orientation == 3 || orientation >= 7;
  const std::size_t height = image.shape.height;
  const std::size_t width = image.shape.width;
  Image turned{image.shape, std::vector<std::uint8_t>(image.pixels.size())};
  if (transposed) {
    std::swap(turned.shape.height, turned.shape.width);
  }
  auto pixel = turned.pixels.begin();
  for (std::size_t channel = 0; channel < image.shape.channels; ++channel) {
    for (std::size_t y = 0; y < turned.shape.height; ++y) {
      for (std::size_t x = 0; x < turned.shape.width; ++x) {
        const std::size_t row = transposed ? x : y;
        const std::size_t column = transposed ? y : x;
        *pixel++ =
            image.pixels[(channel * height + (rows_turned ? height - 1 - row : row)) * width +
                         (columns_turned ? width - 1 - column : column)];
      }
    }
  }
  return turned;
}

}  // namespace syncopate
