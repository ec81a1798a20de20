#pragma once

#include <cstdint>
#include <span>

#include "data/image_file.hpp"

namespace syncopate {

/// How to turn a JPEG image upright, 1 to 8: what a camera noted in the segment APP1 (EXIF, CIPA
/// DC-008, tag 0x0112). 1, as it is, without a note or with a damaged one.
unsigned exif_orientation(std::span<const std::uint8_t> jpeg);

/// The image turned and mirrored from `orientation`, 1 to 8, to 1. From 5 on height and width
/// change places.
Image upright(Image image, unsigned orientation);

}  // namespace syncopate
