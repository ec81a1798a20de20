#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/data/idx_files.hpp"

namespace syncopate::test {

/// A PNG image; `pixels` are one after another, with 1, 3 or 4 values each.
inline std::string png_bytes(std::uint32_t width, std::uint32_t height,
                             const std::vector<std::uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  const std::size_t channels = pixels.size() / width / height;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string written(bytes, '\0');
  EXPECT_NE(
      ::png_image_write_to_memory(&image, written.data(), &bytes, 0, pixels.data(), 0, nullptr), 0);
  written.resize(bytes);
  return written;
}

/// A JPEG image of the best quality.
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

/// A PNG image of one colour.
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
