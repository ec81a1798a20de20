#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace syncopate {

/// The names of the datasets that `load_cifar` reads.
std::span<const std::string> cifar_names();

/// Loads `cifar10` or `cifar100` in its binary version, whole or in part: the length of a file says
/// how many images it has.
///
/// Format: an image is its label, one byte, and 3,072 bytes: 32×32 red values row by row, then the
///         green and the blue ones. CIFAR-100 has two labels per image, the coarse one first; this
///         reads the fine one (Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny
///         Images").
/// `folder` holds `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`, or `train.bin` and
/// `test.bin`; or the folder of this name that the archive has, `cifar-10-batches-bin` or
/// `cifar-100-binary`.
/// Errors: DataError if no folder is named or it is missing (with what to download), a file is
///         missing, its length is not a multiple of an image's, or a label is out of range.
Dataset load_cifar(const std::string& name, const std::filesystem::path& folder,
                   Which which = Which::both);

/// A file of a dataset, with the CRC-32 of its bytes (that of gzip and zlib).
struct DataFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

/// The files that `load_cifar` reads, in order. Errors: DataError if one cannot be read.
std::vector<DataFile> cifar_files(const std::string& name, const std::filesystem::path& folder);

}  // namespace syncopate
