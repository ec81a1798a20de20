#include "checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

constexpr std::string_view name_prefix = "round-";
constexpr std::string_view extension = ".safetensors";
constexpr std::string_view any_worker = "worker.";  ///< the prefix of workers' states

void append(std::vector<NamedTensor>& tensors, const std::vector<TensorInfo>& layout,
            std::span<const float> flat) {
  for (const TensorInfo& tensor : layout) {
    tensors.push_back({tensor.name, tensor.shape, flat.subspan(tensor.offset, values_in(tensor))});
  }
}

/// The key of the metadata that lists the slots written by parameter, separated by spaces.
constexpr const char* by_parameter = "by_parameter";

void append_by_parameter(std::vector<NamedTensor>& tensors, const std::string& slot,
                         const std::vector<TensorInfo>& params, std::span<const float> flat) {
  for (const TensorInfo& param : params) {
    tensors.push_back({fmt::format("{}.{}", slot, param.name), param.shape,
                       flat.subspan(param.offset, values_in(param))});
  }
}

struct Content {
  Metadata metadata;
  std::vector<NamedTensor> tensors;
};

void append(Content& content, const std::vector<TensorInfo>& params, const std::string& name,
            const OptimizerState& state) {
  for (const auto& [key, values] : state.slots) {
    const std::string slot = fmt::format("{}.{}", name, key);
    if (values.size() == values_in(params)) {
      append_by_parameter(content.tensors, slot, params, values);
      content.metadata[by_parameter] += slot + ' ';
    } else {
      content.tensors.push_back({slot, {static_cast<std::int64_t>(values.size())}, values});
    }
  }
  for (const auto& [counter, value] : state.counters) {
    content.metadata[fmt::format("{}.{}", name, counter)] = std::to_string(value);
  }
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

void load(Replica& replica, ReplicaVector which, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), replica.view(which).begin());
  replica.store(which);
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
  return {.params = replica.layout(ReplicaVector::params),
          .buffers = replica.layout(ReplicaVector::buffers)};
}

std::size_t values_in(const TensorInfo& tensor) {
  return static_cast<std::size_t>(std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                  std::int64_t{1}, std::multiplies<>()));
}

std::size_t values_in(const std::vector<TensorInfo>& layout) {
  std::size_t values = 0;
  for (const TensorInfo& tensor : layout) {
    values = std::max(values, tensor.offset + values_in(tensor));
  }
  return values;
}

void write_checkpoint(const std::filesystem::path& path, const TrainingProgress& progress,
                      const std::string& network, const ModelView& model) {
  Content content{.metadata = {{"format", "syncopate 2"},
                               {"network", network},
                               {"step", std::to_string(progress.step)},
                               {"round", std::to_string(progress.round)},
                               {"samples", std::to_string(progress.samples)},
                               {"training_ns", std::to_string(progress.training.count())},
                               {by_parameter, ""}},
                  .tensors = {}};
  append(content.tensors, model.layout.params, model.params);
  append(content.tensors, model.layout.buffers, model.buffers);
  for (const auto& [name, state] : model.states) {
    append(content, model.layout.params, name, state);
  }
  write_safetensors(path, content.metadata, content.tensors);
}

Checkpoint::Checkpoint(std::string bytes, std::string source, const std::string& network)
    : file_(std::move(bytes), source), source_(std::move(source)) {
  const auto found = file_.metadata().find("network");
  if (found == file_.metadata().end() || found->second != network) {
    throw DataError(fmt::format(
        "{} is a checkpoint of {}, and this job trains {}", source_,
        found == file_.metadata().end() ? std::string("an unnamed network") : found->second,
        network));
  }
  if (!file_.metadata().contains(by_parameter)) {
    throw DataError(
        fmt::format("{} was written by an older version, whose optimizer state has another form; "
                    "begin the run again",
                    source_));
  }
}

TrainingProgress Checkpoint::progress() const {
  return {.step = count("step"),
          .round = count("round"),
          .samples = count("samples"),
          .training = Duration(count("training_ns"))};
}

std::vector<float> Checkpoint::values(const std::vector<TensorInfo>& layout) const {
  std::vector<float> flat;
  for (const TensorInfo& tensor : layout) {
    if (file_.shape(tensor.name) != tensor.shape) {
      throw DataError(
          fmt::format("{}: {} has another shape than in this network", source_, tensor.name));
    }
    const std::vector<float> values = file_.values(tensor.name);
    flat.resize(std::max(flat.size(), tensor.offset + values.size()));
    std::copy(values.begin(), values.end(),
              flat.begin() + static_cast<std::ptrdiff_t>(tensor.offset));
  }
  return flat;
}

OptimizerState Checkpoint::state(const std::string& name) const {
  const std::string prefix = name + '.';
  OptimizerState state;
  std::set<std::string> split;
  for (const std::string& slot : words_of(file_.metadata().at(by_parameter))) {
    if (slot.starts_with(prefix)) {
      state.slots[slot.substr(prefix.size())] = file_.joined(slot + '.');
      split.insert(slot);
    }
  }
  const auto is_split = [&](const std::string& tensor) {
    return std::any_of(split.begin(), split.end(),
                       [&](const std::string& slot) { return tensor.starts_with(slot + '.'); });
  };
  for (const std::string& tensor : file_.names()) {
    if (tensor.starts_with(prefix) && !is_split(tensor)) {
      state.slots[tensor.substr(prefix.size())] = file_.values(tensor);
    }
  }
  for (const auto& [key, text] : file_.metadata()) {
    if (key.starts_with(prefix)) {
      state.counters[key.substr(prefix.size())] = number(key);
    }
  }
  return state;
}

States Checkpoint::states_of(Rank worker) const {
  const std::string prefix = prefix_of(worker);
  std::set<std::string> names;
  const auto note = [&](const std::string& key) {
    if (key.starts_with(prefix)) {
      names.insert(key.substr(prefix.size(), key.find('.', prefix.size()) - prefix.size()));
    }
  };
  const std::vector<std::string> tensors = file_.names();
  std::for_each(tensors.begin(), tensors.end(), note);
  for (const auto& [key, text] : file_.metadata()) {
    note(key);
  }
  States states;
  for (const std::string& name : names) {
    states[name] = state(prefix + name);
  }
  return states;
}

std::string Checkpoint::without_others(Rank worker) const {
  const std::string own = prefix_of(worker);
  const auto is_kept = [&](const std::string& key) {
    return !key.starts_with(any_worker) || key.starts_with(own);
  };
  std::vector<std::vector<float>> kept;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file_.names()) {
    if (is_kept(name)) {
      kept.push_back(file_.values(name));
      tensors.push_back({name, file_.shape(name), kept.back()});
    }
  }
  Metadata metadata = file_.metadata();
  std::erase_if(metadata, [&](const auto& entry) { return !is_kept(entry.first); });
  return encode_safetensors(metadata, tensors);
}

std::uint64_t Checkpoint::count(const std::string& key) const {
  const std::int64_t value = number(key);
  if (value < 0) {
    throw DataError(fmt::format("{}: its {} is {}, which is no count", source_, key, value));
  }
  return static_cast<std::uint64_t>(value);
}

std::int64_t Checkpoint::number(const std::string& key) const {
  const auto found = file_.metadata().find(key);
  std::int64_t value = 0;
  if (found != file_.metadata().end()) {
    const std::string& text = found->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size()) {
      return value;
    }
  }
  throw DataError(fmt::format("{} has no valid {}; was it written by Syncopate?", source_, key));
}

void load_checkpoint(const Checkpoint& checkpoint, Replica& replica) {
  const ModelLayout layout = layout_of(replica);
  // Everything is read before anything is loaded, so that a damaged checkpoint changes nothing.
  const std::vector<float> params = checkpoint.values(layout.params);
  const std::vector<float> buffers = checkpoint.values(layout.buffers);
  replica.load_optimizer_state(checkpoint.state(state_of_optimizer));
  load(replica, ReplicaVector::params, params);
  load(replica, ReplicaVector::buffers, buffers);
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

std::optional<std::filesystem::path> latest_whole_checkpoint(
    const std::filesystem::path& folder,
    const std::function<void(const std::string&)>& on_damaged) {
  while (auto path = latest_checkpoint(folder)) {
    std::error_code unknown;
    const bool is_file = std::filesystem::is_regular_file(*path, unknown);
    std::string bytes = is_file ? read_file(*path) : "";
    try {
      if (!is_file) {
        throw DataError(path->string() + ": expected a checkpoint, found no file");
      }
      const Safetensors whole(std::move(bytes), path->string());
      return path;
    } catch (const DataError& error) {
      const std::filesystem::path aside = path->string() + ".damaged";
      std::error_code failure;
      std::filesystem::rename(*path, aside, failure);
      if (failure) {
        throw DataError(fmt::format("{}; cannot rename it: {}", error.what(), failure.message()));
      }
      on_damaged(fmt::format("{}; it is now {}", error.what(), aside.filename().string()));
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep) {
  auto found = checkpoints_in(folder);
  std::erase(found, folder / checkpoint_name(0));
  std::error_code unknown;
  std::erase_if(found,
                [&](const auto& path) { return std::filesystem::is_directory(path, unknown); });
  found.resize(found.size() - std::min(keep, found.size()));
  for (const auto& path : found) {
    std::filesystem::remove(path);
  }
}

}  // namespace syncopate
