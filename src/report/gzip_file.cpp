#include "report/gzip_file.hpp"

#include <zlib.h>

#include <array>
#include <span>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr int gzip_header = 16;  // added to the window's bits
constexpr int memory_level = 8;

}  // namespace

GzipFile::GzipFile(const std::filesystem::path& path)
    : file_(path), stream_(std::make_unique<z_stream_s>()) {
  if (::deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_header,
                     memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw DataError("zlib has no memory to write " + path.string());
  }
}

GzipFile::~GzipFile() {
  ::deflateEnd(stream_.get());
}

void GzipFile::write(std::string_view text) {
  deflate(text, Z_NO_FLUSH);
}

void GzipFile::commit() {
  deflate({}, Z_FINISH);
  file_.commit();
}

void GzipFile::deflate(std::string_view text, int flush) {
  std::array<std::byte, 16 * 1024> out{};
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_->avail_in = static_cast<uInt>(text.size());
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(out.data());
    stream_->avail_out = static_cast<uInt>(out.size());
    ::deflate(stream_.get(), flush);
    file_.write(std::span<const std::byte>(out).first(out.size() - stream_->avail_out));
  } while (stream_->avail_out == 0);
}

}  // namespace syncopate
