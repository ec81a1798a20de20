#include "data/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/file.hpp"
#include "base/printable.hpp"
#include "config/text.hpp"
#include "data/idx.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t longest_header = 1U << 16U;
constexpr std::size_t most_dimensions = 32;  ///< NumPy's own limit
constexpr std::size_t letters_of_a_value = 60;
constexpr const char* save_again = "save the array again by numpy.save";

std::uint64_t low_byte_first(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    number |= std::uint64_t{static_cast<std::uint8_t>(bytes[at])} << (8 * at);
  }
  return number;
}

/// Reads the Python dictionary of a header from its beginning to its end.
class Dictionary {
 public:
  Dictionary(const fs::path& path, std::string_view text) : path_(path), left_(text) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      read_entry();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!left_.empty() || !has_type_ || !has_order_ || !has_shape_) {
      damaged();
    }
    return std::move(header_);
  }

 private:
  [[noreturn]] void damaged() const {
    refuse(path_,
           {"a header with descr, fortran_order and shape",
            left_.empty() ? "its end" : fmt::format("'{}'", excerpt(left_, letters_of_a_value)),
            save_again});
  }

  void skip_spaces() {
    while (!left_.empty() && std::isspace(static_cast<unsigned char>(left_.front())) != 0) {
      left_.remove_prefix(1);
    }
  }

  bool take(char wanted) {
    skip_spaces();
    if (left_.empty() || left_.front() != wanted) {
      return false;
    }
    left_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) {
      damaged();
    }
  }

  bool take_word(std::string_view word) {
    skip_spaces();
    if (!left_.starts_with(word)) {
      return false;
    }
    left_.remove_prefix(word.size());
    return true;
  }

  std::string_view text() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') {
      expect('"');
    }
    const std::size_t end = left_.find(quote);
    if (end == std::string_view::npos) {
      damaged();
    }
    const std::string_view found = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return found;
  }

  void read_entry() {
    const std::string_view key = text();
    expect(':');
    if (key == "descr") {
      read_type();
    } else if (key == "fortran_order") {
      read_order();
    } else if (key == "shape") {
      read_shape();
    } else {
      damaged();
    }
  }

  void read_type() {
    skip_spaces();
    if (!left_.empty() && left_.front() == '[') {
      refuse(path_, {"an array of plain numbers", "one of records", save_again});
    }
    const std::string_view type = text();
    const auto bytes = type.size() < 3 ? std::nullopt : number_in<std::size_t>(type.substr(2));
    constexpr std::string_view kinds = "uifb";
    constexpr std::array<std::size_t, 4> sizes{1, 2, 4, 8};
    const bool known = bytes && kinds.find(type[1]) != std::string_view::npos &&
                       std::ranges::find(sizes, *bytes) != sizes.end();
    if (!known || std::string_view("<>|=").find(type[0]) == std::string_view::npos) {
      refuse(path_, {"an array of whole or floating numbers",
                     fmt::format("descr '{}'", excerpt(type, letters_of_a_value)), save_again});
    }
    if (type[0] == '>' && *bytes > 1) {
      refuse(path_, {"values whose low byte comes first", fmt::format("descr '{}'", type),
                     "convert them, as by array.astype('<i8'), and save them again"});
    }
    header_.kind = type[1];
    header_.item_bytes = *bytes;
    has_type_ = true;
  }

  void read_order() {
    if (take_word("True")) {
      refuse(path_, {"rows one after another", "fortran_order",
                     "save numpy.ascontiguousarray of the array"});
    }
    if (!take_word("False")) {
      damaged();
    }
    has_order_ = true;
  }

  void read_shape() {
    header_.shape.clear();
    expect('(');
    while (!take(')')) {
      skip_spaces();
      const auto size = leading_number<std::uint64_t>(left_);
      if (!size || header_.shape.size() == most_dimensions) {
        damaged();
      }
      left_ = size->rest;
      header_.shape.push_back(size->number);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    has_shape_ = true;
  }

  const fs::path& path_;
  std::string_view left_;
  NpyHeader header_;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

/// Bytes of all values. Errors: DataError if they are more than any file holds.
std::uint64_t bytes_of_values(const fs::path& path, const NpyHeader& header) {
  // Far above any file, far below where the product below would wrap.
  constexpr std::uint64_t absurd = std::uint64_t{1} << 44U;
  std::uint64_t bytes = header.item_bytes;
  for (const std::uint64_t size : header.shape) {
    if (size == 0 || size > absurd || size > absurd / bytes) {
      refuse(path, {"sizes above 0 that a file can hold",
                    fmt::format("shape ({})", fmt::join(header.shape, ", ")), save_again});
    }
    bytes *= size;
  }
  return bytes;
}

/// The beginning of a file, which holds its header.
std::string read_beginning(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(longest_header + npy_magic.size() + 6, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

std::uint64_t length_of(const fs::path& path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    refuse(path, {"an array of NumPy", "a folder", save_again});
  }
  const auto bytes = fs::file_size(path, failure);
  if (failure) {
    refuse(path, {"an array of NumPy", failure.message(), "check the path and its permissions"});
  }
  return bytes;
}

}  // namespace

std::string NpyHeader::type_name() const {
  const char* const name = kind == 'f'   ? "float"
                           : kind == 'i' ? "int"
                           : kind == 'u' ? "uint"
                                         : "bool";
  return kind == 'b' ? name : fmt::format("{}{}", name, 8 * item_bytes);
}

NpyHeader read_npy_header(const fs::path& path, std::string_view bytes) {
  if (!bytes.starts_with(npy_magic) || bytes.size() < npy_magic.size() + 2) {
    refuse(path, {"an array of NumPy (.npy)", "other bytes", save_again});
  }
  const auto version = static_cast<std::uint8_t>(bytes[npy_magic.size()]);
  if (version < 1 || version > 3) {
    refuse(path, {"version 1, 2 or 3 of the format", fmt::format("{}", version), save_again});
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = npy_magic.size() + 2 + length_bytes;
  const std::string_view length_text = bytes.substr(npy_magic.size() + 2, length_bytes);
  const std::uint64_t length = low_byte_first(length_text);
  if (length_text.size() < length_bytes || length > longest_header ||
      bytes.size() - begin < length) {
    refuse(path, {fmt::format("a header of at most {} bytes", longest_header),
                  length > longest_header ? fmt::format("one of {}", length) : "its end missing",
                  save_again});
  }
  NpyHeader header = Dictionary(path, bytes.substr(begin, length)).read();
  header.offset = begin + length;
  return header;
}

NpyHeader check_npy(const fs::path& path) {
  const std::uint64_t length = length_of(path);
  NpyHeader header = read_npy_header(path, read_beginning(path));
  const std::uint64_t expected = bytes_of_values(path, header);
  if (length - header.offset != expected) {
    refuse(path, {fmt::format("{} bytes of values, of shape ({}) and type {}", expected,
                              fmt::join(header.shape, ", "), header.type_name()),
                  fmt::format("{}", length - header.offset), "copy the file again"});
  }
  return header;
}

NpyArray read_npy(const fs::path& path) {
  NpyArray array{check_npy(path), read_file(path)};
  array.values.erase(0, array.header.offset);
  return array;
}

}  // namespace syncopate
