#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate {
namespace {

constexpr std::string_view temporary_suffix = ".tmp";
/// A lack of descriptors often passes: a transport closes silent connections.
constexpr int attempts_to_create = 20;
constexpr int pause_between_attempts_ms = 50;

/// True for "name.PID.tmp".
bool is_temporary(const std::filesystem::path& file) {
  const std::string process = file.stem().extension().string();
  return file.extension() == temporary_suffix && process.size() > 1 &&
         std::all_of(process.begin() + 1, process.end(),
                     [](unsigned char digit) { return std::isdigit(digit) != 0; });
}

/// Flushes the names in a folder to disk; false on an error. A file system without such a call, and
/// a folder that this user may not read, keep their names by themselves.
bool sync_folder(const std::filesystem::path& folder) {
  const char* const name = folder.empty() ? "." : folder.c_str();
  const int descriptor = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return errno == EACCES;
  }
  const bool done = ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return done;
}

/// The descriptor of a new file, or -1 with the reason in `errno`.
int create(const std::string& path, unsigned mode) {
  for (int attempt = 1;; ++attempt) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    const bool none_left = descriptor < 0 && (errno == EMFILE || errno == ENFILE);
    if (!none_left || attempt == attempts_to_create) {
      return descriptor;
    }
    if (attempt == 1) {
      log::warn("cannot create {}: {}; trying again", path, std::strerror(errno));
    }
    ::poll(nullptr, 0, pause_between_attempts_ms);
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, unsigned mode)
    : path_(std::move(path)),
      temporary_(fmt::format("{}.{}{}", path_.string(), ::getpid(), temporary_suffix)) {
  descriptor_ = create(temporary_, mode);
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
      ::rename(temporary_.c_str(), path_.c_str()) != 0 || !sync_folder(path_.parent_path())) {
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

void write_file(const std::filesystem::path& path, std::string_view text, unsigned mode) {
  AtomicFile file(path, mode);
  file.write(text);
  file.commit();
}

std::filesystem::file_status file_status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) {
    throw DataError(
        fmt::format("cannot look at {}: {}; name another path, or correct the folders and links "
                    "that lead there",
                    path.string(), error.message()));
  }
  return status;
}

bool is_there(const std::filesystem::path& path) {
  return std::filesystem::exists(file_status_of(path));
}

void remove_leftovers(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> leftovers;
  std::error_code none;  // a folder that is not there has no leftovers
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (is_temporary(entry.path())) {
      leftovers.push_back(entry.path());
    }
  }
  for (const auto& path : leftovers) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) {
      throw DataError(fmt::format("cannot remove {}: {}", path.string(), error.message()));
    }
  }
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
