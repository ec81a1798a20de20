#include "checkpoint/safetensors.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = sizeof(std::uint64_t);
constexpr const char* metadata_key = "__metadata__";
/// The key of the metadata with the checksum. It is computed over the header without this entry,
/// without spaces and in the order of names, and then over all values.
constexpr const char* checksum_key = "crc32";

class Checksum {
 public:
  explicit Checksum(const json& header) {
    const std::string text = header.dump();
    add(std::as_bytes(std::span(text)));
  }

  void add(std::span<const std::byte> bytes) {
    if (!bytes.empty()) {  // zlib takes null for a request of the initial value
      value_ = ::crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    }
  }
  std::string text() const { return fmt::format("{:08x}", value_); }

 private:
  uLong value_ = 0;
};

json description_of(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  json header;
  header[metadata_key] = metadata;
  std::size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t end = offset + tensor.values.size_bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header;
}

std::string header_of(const json& description) {
  std::string text = description.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the format asks for values aligned to 8 bytes
  return text;
}

/// The length of the header, as it stands at the beginning of a file.
std::array<std::byte, length_bytes> packed_length(const std::string& header) {
  std::array<std::byte, length_bytes> bytes{};
  ByteWriter(bytes).put(std::uint64_t{header.size()});
  return bytes;
}

/// The number of values that a shape holds; empty if one of its sizes is negative or the number
/// overflows.
std::optional<std::size_t> count_of(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 ||
        (extent > 0 && count > std::numeric_limits<std::size_t>::max() / sizeof(float) /
                                   static_cast<std::size_t>(extent))) {
      return std::nullopt;
    }
    count *= static_cast<std::size_t>(extent);
  }
  return count;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const Metadata& metadata,
                       std::span<const NamedTensor> tensors) {
  json description = description_of(metadata, tensors);
  Checksum checksum(description);
  for (const NamedTensor& tensor : tensors) {
    checksum.add(std::as_bytes(tensor.values));
  }
  description[metadata_key][checksum_key] = checksum.text();
  const std::string header = header_of(description);
  AtomicFile file(path);
  file.write(packed_length(header));
  file.write(header);
  for (const NamedTensor& tensor : tensors) {
    file.write(std::as_bytes(tensor.values));
  }
  file.commit();
}

std::string encode_safetensors(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  const std::string header = header_of(description_of(metadata, tensors));
  std::string bytes(length_bytes, '\0');
  std::ranges::copy(packed_length(header), std::as_writable_bytes(std::span(bytes)).begin());
  bytes += header;
  for (const NamedTensor& tensor : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  return bytes;
}

Safetensors::Safetensors(std::string bytes, std::string source)
    : bytes_(std::move(bytes)), source_(std::move(source)) {
  std::uint64_t length = 0;
  if (bytes_.size() < length_bytes) {
    throw damaged(fmt::format("it has {} bytes", bytes_.size()));
  }
  length = ByteReader(std::as_bytes(std::span(bytes_))).take<std::uint64_t>();
  if (length > bytes_.size() - length_bytes) {
    throw damaged(fmt::format("its header should have {} bytes, and {} follow", length,
                              bytes_.size() - length_bytes));
  }
  const std::size_t data = length_bytes + length;
  try {
    json header = json::parse(bytes_.data() + length_bytes, bytes_.data() + data);
    for (const auto& [name, description] : header.items()) {
      if (name == metadata_key) {
        metadata_ = description.get<Metadata>();
      } else {
        tensors_[name] = described(name, description, data);
      }
    }
    check_order(data);
    if (metadata_.contains(checksum_key)) {
      header.at(metadata_key).erase(checksum_key);
      Checksum found(header);
      found.add(std::as_bytes(std::span(bytes_)).subspan(data));
      check_sum(found.text());
    }
  } catch (const json::exception&) {
    throw damaged("its header cannot be read: it is not JSON, or lacks a field");
  }
}

DataError Safetensors::damaged(const std::string& what) const {
  return DataError(fmt::format("{} is not a whole safetensors file: {}", source_, what));
}

Safetensors::Entry Safetensors::described(const std::string& name, const json& description,
                                          std::size_t data) const {
  const auto shape = description.at("shape").get<std::vector<std::int64_t>>();
  const auto [begin, end] =
      description.at("data_offsets").get<std::pair<std::uint64_t, std::uint64_t>>();
  const auto count = count_of(shape);
  if (description.at("dtype") != "F32") {
    throw damaged(fmt::format("{} is not of type F32", name));
  }
  if (begin > end || end > bytes_.size() - data || !count ||
      *count * sizeof(float) != end - begin) {
    throw damaged(fmt::format("the values of {} do not fit its shape or the file", name));
  }
  return {.shape = shape, .begin = data + begin, .count = *count};
}

/// Checks that no two tensors overlap or leave bytes between them, as the format requires.
void Safetensors::check_order(std::size_t data) const {
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // the first byte, and the end
  for (const auto& [name, entry] : tensors_) {
    parts.emplace_back(entry.begin, entry.begin + entry.count * sizeof(float));
  }
  std::ranges::sort(parts);
  std::size_t expected = data;
  for (const auto& [begin, end] : parts) {
    if (begin != expected) {
      throw damaged(
          fmt::format("values begin at byte {}; expected {}", begin - data, expected - data));
    }
    expected = end;
  }
  if (expected != bytes_.size()) {
    throw damaged(
        fmt::format("its values end at byte {} of {}", expected - data, bytes_.size() - data));
  }
}

/// Compares the checksum, and removes it: a reader of the metadata sees only the writer's entries.
void Safetensors::check_sum(const std::string& found) {
  const std::string expected = metadata_.extract(checksum_key).mapped();
  if (found != expected) {
    throw damaged(fmt::format("its checksum is {}; expected {}", found, expected));
  }
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) {
    names.push_back(name);
  }
  std::ranges::stable_sort(names, {}, [&](const std::string& name) { return entry(name).begin; });
  return names;
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw DataError(fmt::format("{} has no tensor {}", source_, name));
  }
  return found->second;
}

std::vector<float> Safetensors::values(const std::string& name) const {
  const Entry& found = entry(name);
  std::vector<float> values(found.count);
  std::copy_n(bytes_.data() + found.begin, found.count * sizeof(float),
              reinterpret_cast<char*>(values.data()));
  return values;
}

const std::vector<std::int64_t>& Safetensors::shape(const std::string& name) const {
  return entry(name).shape;
}

std::vector<float> Safetensors::joined(const std::string& prefix) const {
  std::vector<float> all;
  for (const std::string& name : names()) {
    if (name.starts_with(prefix)) {
      const std::vector<float> part = values(name);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

}  // namespace syncopate
