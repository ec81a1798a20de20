#include "train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

#include "base/errors.hpp"
#include "train/safetensors.hpp"

namespace syncopate {
namespace {

constexpr std::string_view slot_prefix = "optimizer.";
constexpr std::string_view counter_prefix = "optimizer.";
constexpr std::string_view name_prefix = "round-";
constexpr std::string_view extension = ".safetensors";

std::size_t values_of(const TensorInfo& tensor) {
  return static_cast<std::size_t>(std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                  std::int64_t{1}, std::multiplies<>()));
}

void append(std::vector<NamedTensor>& tensors, Replica& replica, Part part) {
  const std::span<const float> flat = replica.view(part);
  for (const TensorInfo& tensor : replica.layout(part)) {
    tensors.push_back({tensor.name, tensor.shape, flat.subspan(tensor.offset, values_of(tensor))});
  }
}

void restore(const Safetensors& file, const std::string& source, Replica& replica, Part part) {
  const std::span<float> flat = replica.view(part);
  for (const TensorInfo& tensor : replica.layout(part)) {
    if (file.shape(tensor.name) != tensor.shape) {
      throw DataError(
          fmt::format("{}: {} has another shape than in this network", source, tensor.name));
    }
    const std::vector<float> values = file.values(tensor.name);
    std::copy(values.begin(), values.end(),
              flat.begin() + static_cast<std::ptrdiff_t>(tensor.offset));
  }
  replica.store(part);
}

std::int64_t number(const Metadata& metadata, const std::string& key, const std::string& source) {
  const auto found = metadata.find(key);
  std::int64_t value = 0;
  if (found != metadata.end()) {
    const std::string& text = found->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= 0) {
      return value;
    }
  }
  throw DataError(fmt::format("{} does not say its {}; was it written by Syncopate?", source, key));
}

OptimizerState optimizer_state_in(const Safetensors& file, const std::string& source) {
  OptimizerState state;
  for (const std::string& name : file.names()) {
    if (name.starts_with(slot_prefix)) {
      state.slots[name.substr(slot_prefix.size())] = file.values(name);
    }
  }
  for (const auto& [key, text] : file.metadata()) {
    if (key.starts_with(counter_prefix)) {
      state.counters[key.substr(counter_prefix.size())] = number(file.metadata(), key, source);
    }
  }
  return state;
}

std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(name_prefix) && name.ends_with(extension)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());  // rounds are padded to one width
  return found;
}

}  // namespace

ModelLayout layout_of(const Replica& replica) {
  return {replica.layout(Part::params), replica.layout(Part::buffers)};
}

void write_checkpoint(const std::filesystem::path& path, const Progress& progress,
                      const std::string& network, Replica& replica) {
  const OptimizerState optimizer = replica.optimizer_state();
  Metadata metadata{{"format", "syncopate 1"},
                    {"network", network},
                    {"step", std::to_string(progress.step)},
                    {"round", std::to_string(progress.round)},
                    {"samples", std::to_string(progress.samples)},
                    {"training_ns", std::to_string(progress.training.count())}};
  for (const auto& [name, value] : optimizer.counters) {
    metadata[std::string(counter_prefix) + name] = std::to_string(value);
  }
  std::vector<NamedTensor> tensors;
  append(tensors, replica, Part::params);
  append(tensors, replica, Part::buffers);
  for (const auto& [name, values] : optimizer.slots) {
    tensors.push_back(
        {std::string(slot_prefix) + name, {static_cast<std::int64_t>(values.size())}, values});
  }
  write_safetensors(path, metadata, tensors);
}

Progress load_checkpoint(std::string bytes, const std::string& source, const std::string& network,
                         Replica& replica) {
  const Safetensors file(std::move(bytes), source);
  const auto found = file.metadata().find("network");
  if (found == file.metadata().end() || found->second != network) {
    throw DataError(fmt::format(
        "{} is a checkpoint of {}, and this job trains {}", source,
        found == file.metadata().end() ? std::string("an unnamed network") : found->second,
        network));
  }
  const auto read = [&](const char* key) { return number(file.metadata(), key, source); };
  const Progress progress{.step = static_cast<std::uint64_t>(read("step")),
                          .round = static_cast<std::uint64_t>(read("round")),
                          .samples = static_cast<std::uint64_t>(read("samples")),
                          .training = Duration(read("training_ns"))};
  replica.load_optimizer_state(optimizer_state_in(file, source));
  restore(file, source, replica, Part::params);
  restore(file, source, replica, Part::buffers);
  return progress;
}

std::string checkpoint_name(std::uint64_t round) {
  return fmt::format("{}{:010}{}", name_prefix, round, extension);
}

std::uint64_t round_of(const std::filesystem::path& checkpoint) {
  const std::string name = checkpoint.filename().string();
  std::uint64_t round = 0;
  const char* const end = name.data() + name.size();
  const auto read = name.starts_with(name_prefix)
                        ? std::from_chars(name.data() + name_prefix.size(), end, round)
                        : std::from_chars_result{end, std::errc::invalid_argument};
  if (read.ec != std::errc() || std::string_view(read.ptr, end) != extension) {
    throw DataError(fmt::format("{} is not named like a checkpoint", checkpoint.string()));
  }
  return round;
}

std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder) {
  const auto found = checkpoints_in(folder);
  return found.empty() ? std::nullopt : std::optional(found.back());
}

void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep) {
  auto found = checkpoints_in(folder);
  found.resize(found.size() - std::min(keep, found.size()));
  for (const auto& path : found) {
    std::filesystem::remove(path);
  }
}

}  // namespace syncopate
