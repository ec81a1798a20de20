#include "telemetry/json_lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate {

std::string json_text(const nlohmann::ordered_json& object, int indent) {
  return object.dump(indent, ' ', /*ensure_ascii=*/false,
                     nlohmann::ordered_json::error_handler_t::replace);
}

JsonLines::JsonLines(const std::filesystem::path& path, Mode mode)
    : path_(path.string()),
      descriptor_(::open(
          path.c_str(),
          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (mode == Mode::create ? O_TRUNC : 0), 0644)) {
  if (descriptor_ < 0) {
    throw DataError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  }
}

JsonLines::~JsonLines() {
  try {
    flush();
  } catch (const DataError& error) {
    log::warn("{}", error.what());
  }
  ::close(descriptor_);
}

void JsonLines::write(const nlohmann::ordered_json& object) {
  write_text(json_text(object));
}

void JsonLines::write_text(std::string_view object) {
  pending_ += object;
  pending_ += '\n';
  if (pending_.size() >= flush_bytes) {
    flush();
  }
}

void JsonLines::flush() {
  const off_t whole_lines = ::lseek(descriptor_, 0, SEEK_END);
  std::string_view left = pending_;
  while (!left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno != EINTR) {
      const int reason = errno;
      pending_.clear();
      discard_after(whole_lines);
      throw DataError(fmt::format("cannot write {}: {}", path_, std::strerror(reason)));
    }
    left.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  pending_.clear();
}

/// Removes a partly written line, which would damage the next one. A device or a pipe cannot be
/// cut.
void JsonLines::discard_after(std::int64_t whole_lines) {
  if (whole_lines < 0 || ::ftruncate(descriptor_, whole_lines) != 0) {
    log::debug("{} may end in a part of a line", path_);
  }
}

}  // namespace syncopate
