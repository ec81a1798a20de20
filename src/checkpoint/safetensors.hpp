#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"

namespace syncopate {

/// A float32 tensor to be written.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

using Metadata = std::map<std::string, std::string>;

/// Writes tensors in the safetensors format: eight bytes of header length, a JSON header, and the
/// values, little-endian. `safetensors.torch.load_file` reads it. The metadata gets one more entry,
/// `crc32`: a checksum of the metadata, the descriptions of the tensors, and the values.
/// Errors: DataError, when the file cannot be written; there is then no file, or the old one.
void write_safetensors(const std::filesystem::path& path, const Metadata& metadata,
                       std::span<const NamedTensor> tensors);

/// The same bytes, in memory, without the checksum.
std::string encode_safetensors(const Metadata& metadata, std::span<const NamedTensor> tensors);

/// The content of a safetensors file.
class Safetensors {
 public:
  /// Takes the bytes of a whole file; `source` names it in errors.
  /// Errors: DataError: truncated, a header that is no JSON, offsets outside the file, a dtype
  ///         other than F32, a shape that contradicts its offsets, bytes of two tensors or of none,
  ///         another checksum than that of the file. A file without a checksum is accepted.
  Safetensors(std::string bytes, std::string source);

  /// The metadata, without the checksum.
  const Metadata& metadata() const { return metadata_; }
  /// The names of all tensors, in the order of the file.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  /// Errors: DataError, when there is no such tensor.
  std::vector<float> values(const std::string& name) const;
  const std::vector<std::int64_t>& shape(const std::string& name) const;
  /// The values of all tensors whose names begin with `prefix`, one after another as they lie in
  /// the file.
  std::vector<float> joined(const std::string& prefix) const;

 private:
  struct Entry {
    std::vector<std::int64_t> shape;
    std::size_t begin = 0;  ///< in bytes_
    std::size_t count = 0;
  };

  DataError damaged(const std::string& what) const;
  /// The tensor of this description, whose values lie behind byte `data`.
  Entry described(const std::string& name, const nlohmann::json& description,
                  std::size_t data) const;
  void check_order(std::size_t data) const;
  void check_sum(const std::string& found);
  const Entry& entry(const std::string& name) const;

  std::string bytes_;
  std::string source_;
  Metadata metadata_;
  std::map<std::string, Entry> tensors_;
};

}  // namespace syncopate
