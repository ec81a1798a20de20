#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace syncopate {

/// The text of an object; with `indent`, over several lines. A byte that is not UTF-8 becomes
/// U+FFFD: a host or a folder that is named in another encoding must not end a job.
std::string json_text(const nlohmann::ordered_json& object, int indent = -1);

/// A log of JSON objects, one per line, which can be read while it grows.
///
/// Lines are buffered until they have `flush_bytes`, or until `flush` is called, and then written
/// in one call, so that a reader never sees part of a line.
///
/// Thread: one at a time.
class JsonLines {
 public:
  enum class Mode { create, append };

  /// Errors: DataError if the file cannot be opened.
  JsonLines(const std::filesystem::path& path, Mode mode);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Errors: DataError if the lines cannot be written (a full disk).
  void write(const nlohmann::ordered_json& object);
  /// The same for the text of an object on one line.
  void write_text(std::string_view object);
  void flush();

 private:
  static constexpr std::size_t flush_bytes = 16 * 1024;

  void discard_after(std::int64_t whole_lines);

  std::string path_;
  int descriptor_;
  std::string pending_;
};

}  // namespace syncopate
