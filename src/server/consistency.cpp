#include "server/consistency.hpp"

#include <set>
#include <utility>

#include "base/errors.hpp"
#include "server/backup_steps.hpp"
#include "server/gradient_table.hpp"
#include "server/ssp_bound.hpp"

namespace syncopate {
namespace {

/// Applies each push as it comes, and answers at once: no worker waits for another.
class ImmediateUpdates : public Consistency {
 public:
  explicit ImmediateUpdates(ShardStore& store) : store_(store) {}

  std::vector<Rank> on_request(Rank worker, bool push, bool pull) final {
    if (push) {
      apply(worker, pull);
    } else if (pull) {
      store_.read(worker);
    }
    return {worker};
  }
  std::vector<Rank> on_gone(Rank /*worker*/) final { return {}; }

 protected:
  ShardStore& store() { return store_; }

 private:
  /// Applies the push of `worker`. `pull`: the worker also expects the parameters.
  virtual void apply(Rank worker, bool pull) = 0;

  ShardStore& store_;
};

/// A worker pushes a gradient.
class DirectUpdates final : public ImmediateUpdates {
 public:
  using ImmediateUpdates::ImmediateUpdates;

 private:
  void apply(Rank worker, bool pull) override { store().apply(worker, pull); }
};

/// EASGD: a worker pushes its own parameters; they and the shard's move towards each other.
class ElasticUpdates final : public ImmediateUpdates {
 public:
  ElasticUpdates(ShardStore& store, float moving_rate)
      : ImmediateUpdates(store), moving_rate_(moving_rate) {}

 private:
  void apply(Rank worker, bool /*pull*/) override { store().exchange(worker, moving_rate_); }

  float moving_rate_;
};

/// Allreduce through a server: when every worker has pushed, each receives Σ weight_i · x_i,
/// reduced in the order of ranks, so that the result has the same bits in whatever order the pushes
/// arrive.
class ServerReduce : public Consistency {
 public:
  explicit ServerReduce(ShardStore& store) : store_(store) {}

  std::vector<Rank> on_request(Rank worker, bool push, bool /*pull*/) override {
    if (!push) {
      store_.read(worker);
      return {worker};
    }
    arrived_.insert(worker);
    if (arrived_.size() < store_.workers()) {
      return {};
    }
    store_.reduce();
    const std::set<Rank> all = std::exchange(arrived_, {});
    return {all.begin(), all.end()};
  }
  /// No other worker can continue without this one: the coordinator ends the job.
  std::vector<Rank> on_gone(Rank /*worker*/) override { return {}; }
  std::vector<Rank> waited_for(Rank /*worker*/) const override {
    std::vector<Rank> missing;
    for (std::uint32_t rank = 0; rank < store_.workers(); ++rank) {
      if (!arrived_.contains(Rank{rank})) {
        missing.push_back(Rank{rank});
      }
    }
    return missing;
  }

 private:
  ShardStore& store_;
  std::set<Rank> arrived_;
};

}  // namespace

std::vector<Rank> Consistency::on_admitted(std::uint64_t /*step*/,
                                           std::span<const Rank> /*workers*/) {
  throw ProtocolError(
      "a shard received the gradients that make up a step, but has no backup workers");
}

std::unique_ptr<Consistency> make_consistency(ShardStore& store,
                                              const ConsistencyOptions& options) {
  switch (options.kind) {
    case ConsistencyOptions::Kind::at_once: return std::make_unique<DirectUpdates>(store);
    case ConsistencyOptions::Kind::table: return std::make_unique<TableUpdates>(store);
    case ConsistencyOptions::Kind::bounded: return std::make_unique<SspBound>(store, options.slack);
    case ConsistencyOptions::Kind::backup: return std::make_unique<BackupSteps>(store, options);
    case ConsistencyOptions::Kind::elastic:
      return std::make_unique<ElasticUpdates>(store, options.moving_rate);
    case ConsistencyOptions::Kind::reduce: return std::make_unique<ServerReduce>(store);
  }
  throw InternalError("a consistency of unknown kind");
}

}  // namespace syncopate
