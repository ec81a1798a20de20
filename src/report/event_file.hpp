#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

/// A value of a curve that TensorBoard draws.
struct Scalar {
  std::string tag;  ///< "evaluation/accuracy": the part before the slash is a group
  double value = 0;
};

/// An event file of TensorBoard with scalars: TFRecords (the length as u64, its masked CRC-32C, the
/// bytes, their masked CRC-32C, all little-endian) of `tensorflow.Event` messages.
///
/// A record is written in one call, so a reader never sees part of one.
///
/// Thread: one at a time.
class EventFile {
 public:
  /// Opens `path`, and appends if the file exists.
  /// Errors: DataError if it cannot be opened or written.
  EventFile(const std::filesystem::path& path, double wall_time);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// `wall_time`: seconds since 1970. Errors: DataError (a full disk).
  void write(double wall_time, std::int64_t step, std::span<const Scalar> scalars);

 private:
  void append(const std::string& message);

  std::string path_;
  int descriptor_;
};

/// CRC-32C of the bytes, rotated and shifted as in TFRecords: so the checksum of data that contain
/// checksums stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace syncopate
