#include "data/exif.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

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

std::size_t reversed_if(bool reversed, std::size_t at, std::size_t count) {
  return reversed ? count - 1 - at : at;
}

/// How an image is turned to stand upright: rows and columns are swapped, or counted from the end.
struct Turn {
  bool transposed;
  bool rows;
  bool columns;

  /// Where an image of `height` and `width` has what is at (y, x) when it stands upright.
  std::size_t place(std::size_t y, std::size_t x, std::size_t height, std::size_t width) const {
    if (transposed) {
      std::swap(y, x);
    }
    return reversed_if(rows, y, height) * width + reversed_if(columns, x, width);
  }
};

/// By orientation, from 1.
constexpr Turn turns[] = {{false, false, false}, {false, false, true}, {false, true, true},
                          {false, true, false},  {true, false, false}, {true, true, false},
                          {true, true, true},    {true, false, true}};

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
  const Turn turn = turns[orientation - 1];
  const std::size_t height = image.shape.height;
  const std::size_t width = image.shape.width;
  Image turned{image.shape, std::vector<std::uint8_t>(image.pixels.size())};
  if (turn.transposed) {
    std::swap(turned.shape.height, turned.shape.width);
  }
  auto pixel = turned.pixels.begin();
  for (std::size_t channel = 0; channel < image.shape.channels; ++channel) {
    for (std::size_t y = 0; y < turned.shape.height; ++y) {
      for (std::size_t x = 0; x < turned.shape.width; ++x) {
        *pixel++ = image.pixels[channel * height * width + turn.place(y, x, height, width)];
      }
    }
  }
  return turned;
}

}  // namespace syncopate
