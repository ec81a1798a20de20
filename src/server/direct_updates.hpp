#pragma once

#include "server/consistency.hpp"

namespace syncopate {

/// Applies each gradient as it comes, and answers at once: nobody waits for anybody.
class DirectUpdates : public Consistency {
 public:
  explicit DirectUpdates(ShardStore& store) : store_(store) {}

  std::vector<Rank> asked(Rank worker, bool push, bool pull) override;
  std::vector<Rank> gone(Rank /*worker*/) override { return {}; }

 private:
  ShardStore& store_;
};

/// EASGD: a worker pushes its own parameters; they and the shard's move towards each other.
class ElasticUpdates : public Consistency {
 public:
  ElasticUpdates(ShardStore& store, float moving_rate) : store_(store), moving_rate_(moving_rate) {}

  std::vector<Rank> asked(Rank worker, bool push, bool pull) override;
  std::vector<Rank> gone(Rank /*worker*/) override { return {}; }

 private:
  ShardStore& store_;
  float moving_rate_;
};

}  // namespace syncopate
