#include "data/image_file.hpp"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "data/exif.hpp"
#include "data/idx.hpp"
#include "data/image_decoder.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t most_pixels_a_side = 1U << 14U;
constexpr std::uint64_t most_pixels = 1U << 26U;
constexpr std::size_t longest_image_file = 1U << 30U;
constexpr std::size_t letters_of_a_reason = 120;

struct DestroyJpeg {
  void operator()(void* handle) const { ::tjDestroy(handle); }
};
using JpegHandle = std::unique_ptr<void, DestroyJpeg>;

/// Refuses a JPEG image that cannot be read whole. Other images that the library warns of, such as
/// one with bytes between its parts, are accepted: every viewer shows them.
void check_jpeg(const fs::path& path, const JpegHandle& handle, int result) {
  if (result == 0) {
    return;
  }
  const std::string_view reason = ::tjGetErrorStr2(handle.get());
  const bool cut_off = reason.find("remature end") != std::string_view::npos;
  if (cut_off || ::tjGetErrorCode(handle.get()) != TJERR_WARNING) {
    refuse_image(path, "JPEG", reason);
  }
}

Image decode_jpeg(const fs::path& path, std::span<const std::uint8_t> bytes) {
  const JpegHandle handle(::tjInitDecompress());
  if (!handle) {
    throw Error(fmt::format("libjpeg-turbo cannot start: {}", ::tjGetErrorStr2(nullptr)));
  }
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  const auto length = static_cast<unsigned long>(bytes.size());
  check_jpeg(path, handle,
             ::tjDecompressHeader3(handle.get(), bytes.data(), length, &width, &height,
                                   &subsampling, &colours));
  check_image_size(path, static_cast<std::uint64_t>(height), static_cast<std::uint64_t>(width));
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    refuse(path, {"a JPEG image of grey values or red, green and blue", "CMYK", replace_image});
  }
  const bool grey = colours == TJCS_GRAY;
  const SampleShape shape{grey ? 1U : 3U, static_cast<std::uint32_t>(height),
                          static_cast<std::uint32_t>(width)};
  std::vector<std::uint8_t> pixels(shape.values());
  check_jpeg(path, handle,
             ::tjDecompress2(handle.get(), bytes.data(), length, pixels.data(), width, 0, height,
                             grey ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS));
  return upright(with_channels_first(shape, pixels), exif_orientation(bytes));
}

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view prefix) {
  return bytes.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

}  // namespace

void check_image_size(const fs::path& path, std::uint64_t height, std::uint64_t width) {
  const bool empty = height == 0 || width == 0;
  if (empty || std::max(height, width) > most_pixels_a_side || height * width > most_pixels) {
    refuse(path, {fmt::format("an image of at most {} pixels a side and {} in all",
                              most_pixels_a_side, most_pixels),
                  fmt::format("{} × {}", height, width), replace_image});
  }
}

void refuse_image(const fs::path& path, const char* kind, std::string_view reason) {
  refuse(path, {fmt::format("a whole {} image", kind), excerpt(reason, letters_of_a_reason),
                replace_image});
}

Image with_channels_first(const SampleShape& shape, const std::vector<std::uint8_t>& pixels) {
  if (shape.channels == 1) {
    return {shape, pixels};
  }
  Image image{shape, {}};
  image.pixels.reserve(pixels.size());
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    for (std::size_t at = channel; at < pixels.size(); at += shape.channels) {
      image.pixels.push_back(pixels[at]);
    }
  }
  return image;
}

Image decode_image(const fs::path& path, std::span<const std::uint8_t> bytes) {
  if (begins_with(bytes, "\x89PNG")) {
    return decode_png(path, bytes);
  }
  if (begins_with(bytes, "\xff\xd8")) {
    return decode_jpeg(path, bytes);
  }
  refuse(path,
         {"a PNG or JPEG image", bytes.empty() ? "an empty file" : "other bytes", replace_image});
}

Image read_image(const fs::path& path) {
  const std::string bytes = read_file(path, longest_image_file);
  return decode_image(path, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::vector<std::uint8_t> in_colour(std::span<const std::uint8_t> pixels, std::size_t plane) {
  std::vector<std::uint8_t> colours;
  colours.reserve(3 * pixels.size());
  for (std::size_t begin = 0; begin < pixels.size(); begin += plane) {
    const auto grey = pixels.subspan(begin, plane);
    for (int channel = 0; channel < 3; ++channel) {
      colours.insert(colours.end(), grey.begin(), grey.end());
    }
  }
  return colours;
}

}  // namespace syncopate
