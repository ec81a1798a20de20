#include "data/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr std::uint8_t unsigned_byte = 8;
constexpr const char* kind = "an IDX file";

void require_file(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    refuse(path, {kind, "a folder", "pass the folder that holds the files, not one above it"});
  }
  const auto bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    refuse(path, {kind, failure.message(), "check the path and its permissions"});
  }
  if (bytes == 0) {
    refuse(path, {kind, "an empty file", fetch_again});
  }
}

/// The bytes of a file, unpacked if it is a gzip stream.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path) : path_(path) {
    require_file(path);
    file_.reset(::gzopen(path.c_str(), "rb"));
    if (!file_) {
      refuse(path_, {"a readable file", std::strerror(errno), "check its permissions"});
    }
    ::gzbuffer(file_.get(), 1U << 17U);
    if (path.extension() == ".gz" && ::gzdirect(file_.get()) != 0) {
      if (is_web_page()) {
        refuse(path_, {"a gzip stream", "a web page",
                       "the server does not have the file: fetch it from another address"});
      }
      refuse(path_, {"a gzip stream", "other bytes",
                     "fetch it again, or drop .gz from its name if it is unpacked already"});
    }
  }

  /// Reads until `into` is full or the file ends, and returns the number of bytes.
  std::size_t read(std::span<std::uint8_t> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const std::size_t wanted = std::min<std::size_t>(into.size() - filled, 1U << 30U);
      const int got = ::gzread(file_.get(), into.data() + filled, static_cast<unsigned>(wanted));
      if (got <= 0) {
        break;
      }
      filled += static_cast<std::size_t>(got);
    }
    require_sound_stream();
    return filled;
  }

 private:
  bool is_web_page() {
    std::array<std::uint8_t, 64> begin{};
    const std::size_t length = read(begin);
    const auto first = std::find_if_not(begin.begin(), begin.begin() + length,
                                        [](std::uint8_t byte) { return byte <= ' '; });
    return first != begin.begin() + length && *first == '<';
  }

  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };

  void require_sound_stream() {
    int code = Z_OK;
    const char* message = ::gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) {
      refuse(path_, {"a whole gzip stream", "its end missing", fetch_again});
    }
    if (code == Z_ERRNO) {
      refuse(path_, {"a readable file", std::strerror(errno), "check the disk"});
    }
    if (code < 0) {
      const bool sum = std::string_view(message).find("data check") != std::string_view::npos;
      refuse(path_,
             {"a sound gzip stream", sum ? "another checksum" : "damaged bytes", fetch_again});
    }
  }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::uint32_t big_endian(std::span<const std::uint8_t, 4> bytes) {
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U |
         std::uint32_t{bytes[2]} << 8U | std::uint32_t{bytes[3]};
}

std::uint32_t read_word(ByteSource& source, const std::filesystem::path& path) {
  std::array<std::uint8_t, 4> bytes{};
  if (const auto got = source.read(bytes); got < bytes.size()) {
    refuse(path, {"an IDX header", fmt::format("{} of the next 4 bytes", got), fetch_again});
  }
  return big_endian(bytes);
}

/// The advice about a file that begins with another number.
const char* remedy_for(std::uint32_t found) {
  constexpr std::uint32_t gzip = 0x1f8b;
  const std::uint32_t first = found >> 24U;
  if (found >> 16U == gzip) {
    return "it is packed twice: unpack it once, by gunzip";
  }
  return first == '<' ? "it is a web page: fetch the file from another address"
                      : "check that files were not exchanged";
}

std::vector<std::uint32_t> read_dimensions(ByteSource& source, const std::filesystem::path& path,
                                           std::uint32_t count) {
  const std::uint32_t magic = std::uint32_t{unsigned_byte} << 8U | count;
  if (const std::uint32_t found = read_word(source, path); found != magic) {
    refuse(path, {fmt::format("magic {:08x} (IDX, unsigned bytes, dimensions: {})", magic, count),
                  fmt::format("{:08x}", found), remedy_for(found)});
  }
  std::vector<std::uint32_t> dimensions(count);
  for (auto& dimension : dimensions) {
    dimension = read_word(source, path);
  }
  return dimensions;
}

std::uint64_t count_values(const IdxArray& array, const std::filesystem::path& path) {
  // Far above any file, far below where the product below would wrap.
  constexpr std::uint64_t absurd = std::uint64_t{1} << 40U;
  std::uint64_t product = 1;
  for (const std::uint32_t dimension : array.dimensions) {
    product *= dimension;
    if (product == 0 || product > absurd) {
      refuse(path,
             {"counts above 0 that a file can hold",
              fmt::format("{} in its header", fmt::join(array.dimensions, " × ")), fetch_again});
    }
  }
  return product;
}

/// Grows `values` as the file fills it, so that a header with false counts cannot take all memory.
void read_values(ByteSource& source, std::uint64_t count, std::vector<std::uint8_t>& values) {
  constexpr std::uint64_t first_chunk = std::uint64_t{64} << 20U;
  while (values.size() < count) {
    const std::size_t had = values.size();
    const std::uint64_t chunk = std::max<std::uint64_t>(had, first_chunk);
    values.resize(std::min(count, had + chunk));
    const std::size_t got = source.read(std::span(values).subspan(had));
    if (had + got < values.size()) {
      values.resize(had + got);
      return;
    }
  }
}

}  // namespace

void refuse(const std::filesystem::path& path, const Refusal& why) {
  throw DataError(fmt::format("{}: expected {}, found {}; {}", path.string(), why.expected,
                              why.found, why.remedy));
}

std::vector<std::uint32_t> read_idx_header(const std::filesystem::path& path,
                                           std::uint32_t dimensions) {
  ByteSource source(path);
  return read_dimensions(source, path, dimensions);
}

IdxArray read_idx(const std::filesystem::path& path, std::uint32_t dimensions) {
  ByteSource source(path);
  IdxArray array;
  array.dimensions = read_dimensions(source, path, dimensions);
  const std::uint64_t count = count_values(array, path);
  read_values(source, count, array.values);
  const auto expected = [&] {
    return fmt::format("{} values ({} in its header)", count, fmt::join(array.dimensions, " × "));
  };
  if (array.values.size() < count) {
    refuse(path, {expected(), fmt::format("{}", array.values.size()), fetch_again});
  }
  std::array<std::uint8_t, 1> more{};
  if (source.read(more) != 0) {  // also has zlib verify the checksum at the stream's end
    refuse(path, {expected(), "more", fetch_again});
  }
  return array;
}

}  // namespace syncopate
