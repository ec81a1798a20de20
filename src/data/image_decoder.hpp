#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "data/image_file.hpp"

/// Functions that the decoders of all formats share.
namespace syncopate {

inline constexpr const char* replace_image = "replace this image or remove it";

/// Refuses a size that is 0 or above the limits of `decode_image`. Errors: DataError.
void check_image_size(const std::filesystem::path& path, std::uint64_t height, std::uint64_t width);

/// Throws a DataError of one line: no whole image of the format `kind`, with the reason of its
/// library.
[[noreturn]] void refuse_image(const std::filesystem::path& path, const char* kind,
                               std::string_view reason);

/// Reorders values from pixel by pixel to channel by channel.
Image with_channels_first(const SampleShape& shape, const std::vector<std::uint8_t>& pixels);

/// Decodes a PNG image, as `decode_image` says.
Image decode_png(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

}  // namespace syncopate
