#include "checkpoint/safetensors.hpp"

#include <fmt/format.h>

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

std::string header_of(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  json header;
  header[metadata_key] = metadata;
  std::size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t end = offset + tensor.values.size_bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the format asks for values aligned to 8 bytes
  return text;
}

/// The length of the header, as it stands at the beginning of a file.
std::array<std::byte, length_bytes> packed_length(const std::string& header) {
  std::array<std::byte, length_bytes> bytes{};
  ByteWriter(bytes).put(std::uint64_t{header.size()});
  return bytes;
}

/// The number of values that a shape holds; no number for one that is negative or overflows.
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
  const std::string header = header_of(metadata, tensors);
  AtomicFile file(path);
  file.write(packed_length(header));
  file.write(header);
  for (const NamedTensor& tensor : tensors) {
    file.write(std::as_bytes(tensor.values));
  }
  file.commit();
}

std::string encode_safetensors(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  const std::string header = header_of(metadata, tensors);
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
  const auto damaged = [&](const std::string& what) {
    return DataError(fmt::format("{} is not a whole safetensors file: {}", source_, what));
  };
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
    const json header = json::parse(bytes_.data() + length_bytes, bytes_.data() + data);
    for (const auto& [name, description] : header.items()) {
      if (name == metadata_key) {
        metadata_ = description.get<Metadata>();
        continue;
      }
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
      tensors_[name] = {.shape = shape, .begin = data + begin, .count = *count};
    }
  } catch (const json::exception&) {
    throw damaged("its header cannot be read: it is not JSON, or lacks a field");
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
