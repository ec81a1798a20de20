#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}.tmp", path_.string(), ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail("create");
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      fail("write");
    }
    bytes = bytes.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) {
    fail("write");
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("write");
  }
}

void AtomicFile::fail(const char* action) {
  const int reason = errno;
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
  ::unlink(temporary_.c_str());
  const char* const remedy =
      reason == EFBIG ? "; raise the limit on the size of files (ulimit -f)" : "";
  throw DataError(
      fmt::format("cannot {} {}: {}{}", action, path_.string(), std::strerror(reason), remedy));
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_file(const std::filesystem::path& path, std::size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw DataError(fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  }
  std::string text;
  std::array<char, 64 * 1024> chunk;
  while (file && text.size() <= most_bytes) {
    file.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > most_bytes) {
    throw DataError(fmt::format("{}: expected at most {} bytes, found more; name another file",
                                path.string(), most_bytes));
  }
  if (file.bad()) {
    throw DataError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  return text;
}

}  // namespace syncopate
