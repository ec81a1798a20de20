#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/batch.hpp"

namespace syncopate {

/// A decoded image: grey with one channel, or red, green and blue.
struct Image {
  SampleShape shape;
  std::vector<std::uint8_t> pixels;  ///< [channels, height, width]
  bool is_dark_of_16_bits = false;   ///< 16 bits per value, none of `darkest_of_16_bits` or more
};

/// An image with 16 bits per value loses the lower 8. An image that uses fewer bits, such as depths
/// in millimetres, may then be all black: `Image` marks it if the upper 8 bits of all values are
/// below this.
inline constexpr std::uint8_t darkest_of_16_bits = 16;

/// Decodes a PNG or a JPEG image by its first bytes, whatever its name.
///
/// PNG:    as Pillow's `convert("RGB")` and torchvision: palettes become colours, of 16 bits the
///         upper 8 are taken, and neither transparency nor a gamma has an effect.
/// JPEG:   grey or colours, turned upright by the camera's orientation (EXIF).
/// Limits: 16,384 pixels a side and 2^26 pixels, checked in the header before memory is taken.
/// Errors: DataError, one line with the file: another format, damaged, cut off, too large, or a
///         JPEG image in the colours of a printer (CMYK).
Image decode_image(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

/// Reads and decodes a file of at most 1 GiB. Errors: as `decode_image`, and a file that cannot be
/// read.
Image read_image(const std::filesystem::path& path);

/// The largest centred part of `image` that has the proportions of `height` to `width`, scaled to
/// them: nothing is distorted. A pixel is the mean of the pixels around its centre, with weights
/// that fall linearly to 0 over one pixel of the coarser of the two grids (a triangle filter, which
/// Pillow calls bilinear). An image of this size stays as it is.
Image scaled(const Image& image, std::uint32_t height, std::uint32_t width);

/// Grey images of `plane` pixels each, one after another, with three equal channels.
std::vector<std::uint8_t> in_colour(std::span<const std::uint8_t> pixels, std::size_t plane);

}  // namespace syncopate
