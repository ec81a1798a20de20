#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

/// Why a data file is refused.
struct Refusal {
  std::string expected;
  std::string found;
  std::string remedy;
};

inline constexpr const char* fetch_again = "the file is damaged: fetch it again";

/// Throws a DataError of one line with the file and the reason.
[[noreturn]] void refuse(const std::filesystem::path& path, const Refusal& why);

/// An array of bytes with its dimensions, outermost first.
struct IdxArray {
  std::vector<std::uint32_t> dimensions;
  std::vector<std::uint8_t> values;  ///< row-major, as many as the product of `dimensions`
};

/// The dimensions in the header of an IDX file, so that a caller can refuse them before the values
/// are unpacked: a small gzip stream may hold gigabytes. Errors: DataError, as `read_idx`.
std::vector<std::uint32_t> read_idx_header(const std::filesystem::path& path,
                                           std::uint32_t dimensions);

/// Reads an IDX file of unsigned bytes with that many dimensions, gzipped or not.
///
/// Format: bytes 0, 0, 8 (unsigned byte), the number of dimensions; one big-endian 32-bit count per
///         dimension; the values (LeCun, Cortes & Burges, "The MNIST database").
/// Memory: at most twice what the file really holds, or 64 MiB, whatever its header claims.
/// Errors: DataError, one line with the file, what was expected and found, and what to do: not a
///         file, empty, not gzip though named so, damaged, truncated, of another kind, with more or
///         fewer values than the header counts.
IdxArray read_idx(const std::filesystem::path& path, std::uint32_t dimensions);

}  // namespace syncopate
