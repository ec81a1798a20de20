#pragma once

#include <vector>

#include "checkpoint/snapshot_writer.hpp"
#include "server/shard_store.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// The whole model of a parameter server, put together by its first shard: the others, which have been
/// asked for theirs, send it. `servers`: all of them, by shard. Errors: those of the transport.
ModelSnapshot model_of_shards(Transport& transport, const std::vector<NodeId>& servers,
                              ShardState first);

}  // namespace syncopate
