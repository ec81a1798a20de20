#pragma once

#include <filesystem>
#include <string>

namespace syncopate {

/// The random key of a job that was started without one, in a file that only its user may read. The
/// destructor removes the file: the key is of no use after the job.
class KeyFile {
 public:
  /// Errors: DataError if the file cannot be written.
  explicit KeyFile(const std::filesystem::path& folder);
  ~KeyFile();
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  const std::string& key() const { return key_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string key_;
  std::filesystem::path path_;
};

}  // namespace syncopate
