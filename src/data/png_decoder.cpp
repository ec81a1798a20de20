#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <utility>

#include "data/image_decoder.hpp"

namespace syncopate {
namespace {

/// Reads one image with libpng. The functions of libpng leave by `longjmp` if the image is damaged,
/// so the functions of this class that call them have no local objects with a destructor. They
/// return false then.
///
/// The simplified interface of libpng would correct colours by the image's gamma and compose it
/// with a background; Pillow and torchvision do neither.
class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> bytes)
      : left_(bytes),
        png_(::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning)),
        info_(png_ == nullptr ? nullptr : ::png_create_info_struct(png_)) {}
  ~PngReader() { ::png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header() {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) {
      return false;
    }
    ::png_set_read_fn(png_, this, &on_read);
    ::png_read_info(png_, info_);
    // Palettes become colours, fewer bits become 8, and transparency is dropped.
    ::png_set_palette_to_rgb(png_);
    ::png_set_expand_gray_1_2_4_to_8(png_);
    ::png_set_strip_alpha(png_);
    ::png_set_interlace_handling(png_);
    ::png_read_update_info(png_, info_);
    return true;
  }

  /// Reads all rows, each of `row_bytes`. After `read_header`.
  bool read_rows(std::span<png_bytep> rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) {
      return false;
    }
    ::png_read_image(png_, rows.data());
    return true;
  }

  SampleShape shape() const {
    return {::png_get_channels(png_, info_), ::png_get_image_height(png_, info_),
            ::png_get_image_width(png_, info_)};
  }
  std::size_t row_bytes() const { return ::png_get_rowbytes(png_, info_); }
  bool has_16_bits() const { return ::png_get_bit_depth(png_, info_) == 16; }
  std::string_view reason() const { return reason_.data(); }

 private:
  static void on_error(png_structp png, png_const_charp reason) {
    auto& reason_there = static_cast<PngReader*>(::png_get_error_ptr(png))->reason_;
    std::strncpy(reason_there.data(), reason, reason_there.size() - 1);
    ::png_longjmp(png, 1);
  }

  static void on_warning(png_structp /*png*/, png_const_charp /*reason*/) {}

  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto& left = static_cast<PngReader*>(::png_get_io_ptr(png))->left_;
    if (count > left.size()) {
      ::png_error(png, "the file ends too early");
    }
    std::copy_n(left.begin(), count, to);
    left = left.subspan(count);
  }

  std::span<const std::uint8_t> left_;
  std::array<char, 128> reason_{};
  png_structp png_;
  png_infop info_;
};

/// The high bytes of values of 16 bits, which come first.
std::vector<std::uint8_t> high_bytes(const std::vector<std::uint8_t>& values) {
  std::vector<std::uint8_t> high;
  high.reserve(values.size() / 2);
  for (std::size_t at = 0; at < values.size(); at += 2) {
    high.push_back(values[at]);
  }
  return high;
}

}  // namespace

Image decode_png(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  PngReader png(bytes);
  if (!png.read_header()) {
    refuse_image(path, "PNG", png.reason());
  }
  const SampleShape shape = png.shape();
  check_image_size(path, shape.height, shape.width);
  std::vector<std::uint8_t> pixels(png.row_bytes() * shape.height);
  std::vector<png_bytep> rows(shape.height);
  std::ranges::generate(rows, [&, next = pixels.data()]() mutable {
    return std::exchange(next, next + png.row_bytes());
  });
  if (!png.read_rows(rows)) {
    refuse_image(path, "PNG", png.reason());
  }
  if (!png.has_16_bits()) {
    return with_channels_first(shape, pixels);
  }
  Image image = with_channels_first(shape, high_bytes(pixels));
  image.is_dark_of_16_bits = std::ranges::max(image.pixels) < darkest_of_16_bits;
  return image;
}

}  // namespace syncopate
