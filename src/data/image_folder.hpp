#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace syncopate {

/// Loads images from class folders: `train/CLASS/NAME.png` and `test/CLASS/NAME.png` or, where
/// there is no `test`, `val/CLASS/NAME.png`; also `.jpg` and `.jpeg`.
///
/// Classes:  the folders in `train`, numbered by their names, at most 65,536. A test image is of
///           one of them.
/// Order:    by class, then by file name, byte by byte. Names that begin with a dot, Thumbs.db and
///           desktop.ini are passed over, and counted.
/// Channels: one if every image is grey, else three.
/// Size:     `image_size` × `image_size`; 0: that of the first training image. Images of another
///           size are `scaled`.
/// Errors:   DataError, one line which names the folder or file: missing, without images, of
///           another kind, too large, damaged. If several files have a fault, the first 20 are
///           logged, and the error has their number.
/// Logs a line for every 10,000 images, and warns of images of 16 bits that become nearly black.
Dataset load_image_folder(const std::filesystem::path& folder, Which which = Which::both,
                          std::uint32_t image_size = 0);

}  // namespace syncopate
