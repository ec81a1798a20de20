#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// The header of a NumPy array file.
struct NpyHeader {
  char kind = 0;                     ///< of a value: 'u', 'i', 'f' or 'b' (bool)
  std::size_t item_bytes = 0;        ///< of a value
  std::vector<std::uint64_t> shape;  ///< outermost first
  std::size_t offset = 0;            ///< of the first value in the file

  /// "uint8", "float32".
  std::string type_name() const;
};

/// Reads the header at the beginning of `bytes`, which are the first ones of `path`.
///
/// Format:  "\x93NUMPY", two bytes of version, the header's length (two bytes in version 1, four in
///          2 and 3, low byte first), and a Python dictionary with the keys descr, fortran_order
///          and shape (NumPy enhancement proposal 1).
/// Errors:  DataError, one line: another magic or version, a header that is damaged, too long or
///          cut off, structured values, high byte first, Fortran order, a size beyond any file.
NpyHeader read_npy_header(const std::filesystem::path& path, std::string_view bytes);

/// An array and its values, as they stand in the file.
struct NpyArray {
  NpyHeader header;
  std::string values;
};

/// Reads the header of a file, and checks that the file has the length that the header implies.
/// Errors: DataError, as `read_npy_header`, and if the file is missing, cut off or too long.
NpyHeader check_npy(const std::filesystem::path& path);

/// Reads a whole file after `check_npy`. Errors: the same.
NpyArray read_npy(const std::filesystem::path& path);

}  // namespace syncopate
