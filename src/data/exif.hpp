#pragma once

#include <cstdint>
#include <span>

#include "data/image_file.hpp"

namespace syncopate {

/// The orientation of a JPEG image, 1 to 8, from its segment APP1 (EXIF, CIPA DC-008, tag 0x0112).
/// 1, upright, if the tag is missing or damaged.
unsigned exif_orientation(std::span<const std::uint8_t> jpeg);

/// The image turned and mirrored from `orientation`, 1 to 8, to 1. From 5 on height and width
/// change places.
Image upright(Image image, unsigned orientation);

}  // namespace syncopate
