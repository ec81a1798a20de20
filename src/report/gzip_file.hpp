#pragma once

#include <memory>
#include <string_view>

#include "base/file.hpp"

struct z_stream_s;

namespace syncopate {

/// Writes a gzipped file through an `AtomicFile`, in bounded memory.
class GzipFile {
 public:
  /// Errors of all calls: DataError.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void write(std::string_view text);
  /// Makes the file visible under its name.
  void commit();

 private:
  void deflate(std::string_view text, int flush);

  AtomicFile file_;
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace syncopate
