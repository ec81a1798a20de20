#include "job/launch/job_key.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

/// A shorter key can be found by trying; a longer one does not fit the handshake.
constexpr std::size_t least_bytes = 16;
constexpr std::size_t most_bytes = 1024;

void refuse_readable_by_others(const fs::path& file, std::string_view named_by) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  if (!error && fs::exists(status) && (status.permissions() & others) != fs::perms::none) {
    throw ConfigError(fmt::format(
        "{}: other users may read or change {} (mode {:04o}); run: chmod 600 {}", named_by,
        file.string(), static_cast<unsigned>(status.permissions()), file.string()));
  }
}

std::string without_white_space(const std::string& text) {
  constexpr const char* white = " \t\r\n";
  const auto first = text.find_first_not_of(white);
  return first == std::string::npos ? std::string()
                                    : text.substr(first, text.find_last_not_of(white) - first + 1);
}

}  // namespace

std::string read_key(const fs::path& file, std::string_view named_by) {
  refuse_readable_by_others(file, named_by);
  const std::string key = without_white_space(read_file(file));
  if (key.size() < least_bytes || key.size() > most_bytes) {
    throw ConfigError(fmt::format(
        "{}: expected a key of {} to {} bytes in {}, found {}; make one: syncopate key new FILE",
        named_by, least_bytes, most_bytes, file.string(), key.size()));
  }
  return key;
}

void make_key(const fs::path& file) {
  std::error_code unknown;  // then the file cannot be written either
  if (fs::exists(fs::symlink_status(file, unknown))) {
    throw ConfigError(fmt::format(
        "{} exists: a job that uses it would lose its key; name another file", file.string()));
  }
  write_file(file, unguessable_token() + "\n", readable_by_owner);
}

}  // namespace syncopate
