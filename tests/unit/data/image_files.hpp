#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/data/idx_files.hpp"

namespace syncopate::test {

inline std::string written_png(png_image& image, const void* pixels, const void* palette) {
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string written(bytes, '\0');
  EXPECT_NE(::png_image_write_to_memory(&image, written.data(), &bytes, 0, pixels, 0, palette), 0);
  written.resize(bytes);
  return written;
}

/// Returns a PNG image; `pixels` has 1, 3 or 4 values for each pixel.
inline std::string png_bytes(std::uint32_t width, std::uint32_t height,
                             const std::vector<std::uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  const std::size_t channels = pixels.size() / width / height;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  return written_png(image, pixels.data(), nullptr);
}

/// Returns the same image with a chunk gAMA: values are light to the power of `gamma` / 100,000.
inline std::string with_gamma(const std::string& png, std::uint32_t gamma) {
  constexpr std::size_t behind_header = 33;
  std::string part = "gAMA";
  const auto append = [](std::string& bytes, std::uint32_t value) {
    for (unsigned shift = 32; shift > 0;) {
      bytes += static_cast<char>(value >> (shift -= 8) & 0xffU);
    }
  };
  append(part, gamma);
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(part.data()), 8);
  append(part, static_cast<std::uint32_t>(sum));
  return png.substr(0, behind_header) + std::string("\0\0\0\x04", 4) + part +
         png.substr(behind_header);
}

/// Returns a PNG image with a row of grey pixels of 16 bits.
inline std::string png_of_16_bits(const std::vector<std::uint16_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<std::uint32_t>(pixels.size());
  image.height = 1;
  image.format = PNG_FORMAT_LINEAR_Y;
  return written_png(image, pixels.data(), nullptr);
}

/// Returns a PNG image with a row of pixels that are indices into a palette of two colours, each of
/// red, green, blue and opacity.
inline std::string palette_png(const std::array<std::array<std::uint8_t, 4>, 2>& colours,
                               const std::vector<std::uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<std::uint32_t>(pixels.size());
  image.height = 1;
  image.format = PNG_FORMAT_RGBA_COLORMAP;
  image.colormap_entries = 2;
  return written_png(image, pixels.data(), colours.data());
}

/// Returns a JPEG image of the best quality.
inline std::string jpeg_bytes(int width, int height, const std::vector<std::uint8_t>& pixels) {
  tjhandle handle = ::tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  const bool grey = pixels.size() == static_cast<std::size_t>(width) * height;
  EXPECT_EQ(::tjCompress2(handle, pixels.data(), width, 0, height, grey ? TJPF_GRAY : TJPF_RGB,
                          &bytes, &length, grey ? TJSAMP_GRAY : TJSAMP_444, 100, 0),
            0);
  std::string written(reinterpret_cast<const char*>(bytes), length);
  ::tjFree(bytes);
  ::tjDestroy(handle);
  return written;
}

/// Returns a PNG image of one colour.
inline std::string plain_png(std::uint32_t width, std::uint32_t height,
                             const std::vector<std::uint8_t>& colour) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t pixel = 0; pixel < width * height; ++pixel) {
    pixels.insert(pixels.end(), colour.begin(), colour.end());
  }
  return png_bytes(width, height, pixels);
}

inline void write_into(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  write_plain(path, bytes);
}

}  // namespace syncopate::test
