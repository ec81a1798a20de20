#include "checkpoint/model_of_shards.hpp"

#include <fmt/format.h>

#include <utility>

#include "checkpoint/shard_messages.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

void append(ModelSnapshot& model, ShardState state, std::size_t shard) {
  model.params.insert(model.params.end(), state.params.begin(), state.params.end());
  model.buffers.insert(model.buffers.end(), state.buffers.begin(), state.buffers.end());
  model.states[fmt::format("server.{}", shard)] = std::move(state.rest);
}

}  // namespace

ModelSnapshot model_of_shards(Transport& transport, const std::vector<NodeId>& servers,
                              ShardState first) {
  ModelSnapshot model;
  append(model, std::move(first), 0);
  for (std::size_t shard = 1; shard < servers.size(); ++shard) {
    const Message message = transport.receive(servers[shard], tags::server_state, no_deadline);
    append(model, decode_state(message.payload), shard);
  }
  return model;
}

}  // namespace syncopate
