#include "server/consistency.hpp"

#include "base/errors.hpp"
#include "server/backup_steps.hpp"
#include "server/direct_updates.hpp"
#include "server/ssp_bound.hpp"
#include "server/sums.hpp"

namespace syncopate {

std::vector<Rank> Consistency::told(std::uint64_t /*step*/, std::span<const Rank> /*workers*/) {
  throw ProtocolError("a shard was told whose gradients make up a step, which it does not ask for");
}

std::unique_ptr<Consistency> make_consistency(ShardStore& store,
                                              const ConsistencyOptions& options) {
  switch (options.kind) {
    case ConsistencyOptions::Kind::at_once: return std::make_unique<DirectUpdates>(store);
    case ConsistencyOptions::Kind::bounded: return std::make_unique<SspBound>(store, options.slack);
    case ConsistencyOptions::Kind::backup: return std::make_unique<BackupSteps>(store, options);
    case ConsistencyOptions::Kind::elastic:
      return std::make_unique<ElasticUpdates>(store, options.moving_rate);
    case ConsistencyOptions::Kind::sums: return std::make_unique<Sums>(store);
  }
  throw InternalError("a consistency of unknown kind");
}

}  // namespace syncopate
