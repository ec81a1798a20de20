#include "checkpoint/shard_states.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "checkpoint/safetensors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr const char* params_name = "params";
constexpr const char* buffers_name = "buffers";
constexpr std::string_view slot_prefix = "slot.";

NamedTensor flat(const std::string& name, std::span<const float> values) {
  return {name, {static_cast<std::int64_t>(values.size())}, values};
}

/// Errors: DataError, if `text` is not a whole number.
std::int64_t counter_in(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw DataError(fmt::format(
        "the state of a server's shard: expected a whole number as counter {}, found '{}'", name,
        text));
  }
  return value;
}

void append(ModelSnapshot& model, ShardState state, std::size_t shard) {
  model.params.insert(model.params.end(), state.params.begin(), state.params.end());
  model.buffers.insert(model.buffers.end(), state.buffers.begin(), state.buffers.end());
  model.states[fmt::format("server.{}", shard)] = std::move(state.rest);
}

}  // namespace

std::vector<std::byte> encode_state(const ShardState& state) {
  std::vector<NamedTensor> tensors{flat(params_name, state.params),
                                   flat(buffers_name, state.buffers)};
  for (const auto& [name, values] : state.rest.slots) {
    tensors.push_back(flat(std::string(slot_prefix) + name, values));
  }
  Metadata metadata;
  for (const auto& [name, value] : state.rest.counters) {
    metadata[name] = std::to_string(value);
  }
  const std::string bytes = encode_safetensors(metadata, tensors);
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

ShardState decode_state(std::span<const std::byte> bytes) {
  const Safetensors file(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                         "the state of a server's shard");
  ShardState state{
      .params = file.values(params_name), .buffers = file.values(buffers_name), .rest = {}};
  for (const std::string& name : file.names()) {
    if (name.starts_with(slot_prefix)) {
      state.rest.slots[name.substr(slot_prefix.size())] = file.values(name);
    }
  }
  for (const auto& [name, text] : file.metadata()) {
    state.rest.counters[name] = counter_in(name, text);
  }
  return state;
}

ModelSnapshot model_of_shards(MemberLink& link, const std::vector<NodeId>& servers,
                              ShardState first) {
  ModelSnapshot model;
  append(model, std::move(first), 0);
  for (std::size_t shard = 1; shard < servers.size(); ++shard) {
    const Message message = link.receive_standing_by(servers[shard], tags::server_state);
    append(model, decode_state(message.payload), shard);
  }
  return model;
}

}  // namespace syncopate
