#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>

namespace syncopate {

// Permissions of new files, less those that the process's umask takes away.
inline constexpr unsigned readable_by_all = 0644;
inline constexpr unsigned readable_by_owner = 0600;

/// Writes a file so that a reader sees all of it or nothing: under a temporary name beside `path`,
/// flushed to disk, then renamed; the folder is flushed, too, so that the new name survives a power
/// cut. On an error the temporary file is removed and `path` is as before.
class AtomicFile {
 public:
  /// `mode`: the permissions of the file. Waits up to a second if the process or the system has no
  /// descriptor left.
  explicit AtomicFile(std::filesystem::path path, unsigned mode = readable_by_all);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Errors: DataError, with the system's reason (a full disk, a missing permission).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Makes the file visible under its name. Errors: DataError.
  void commit();

 private:
  [[noreturn]] void fail(const char* action);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Writes `text` to `path` through an `AtomicFile`.
void write_file(const std::filesystem::path& path, std::string_view text,
                unsigned mode = readable_by_all);

/// The type and permissions of the file at `path`. Errors: DataError if the system cannot determine
/// them: a folder on the way may not be searched, or links lead in a circle.
std::filesystem::file_status file_status_of(const std::filesystem::path& path);
/// True if anything exists at `path`. Errors: as `file_status_of`.
bool is_there(const std::filesystem::path& path);

/// Removes the temporary files that killed processes have left in `folder`. No process may write
/// there meanwhile. Errors: DataError.
void remove_leftovers(const std::filesystem::path& folder);

/// Returns the content of a file. Errors: DataError if it cannot be opened or read, or is longer
/// than `most_bytes`; the rest of a longer file is not read.
std::string read_file(const std::filesystem::path& path,
                      std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

}  // namespace syncopate
