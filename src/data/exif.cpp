#include "data/exif.hpp"

#include <libexif/exif-data.h>

#include <memory>
#include <utility>

namespace syncopate {
namespace {

std::size_t reversed_if(bool reversed, std::size_t at, std::size_t count) {
  return reversed ? count - 1 - at : at;
}

/// How an image is turned to stand upright: rows and columns are swapped, or counted from the end.
struct Turn {
  bool transposed;
  bool rows;
  bool columns;

  /// The index, in an image of `height` and `width`, of the pixel at (y, x) of the upright image.
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

unsigned exif_orientation(std::span<const std::uint8_t> jpeg) {
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> data(
      exif_data_new_from_data(jpeg.data(), static_cast<unsigned>(jpeg.size())), &exif_data_unref);
  const ExifEntry* entry =
      data == nullptr ? nullptr
                      : exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < sizeof(ExifShort)) {
    return 1;
  }
  const unsigned orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
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
