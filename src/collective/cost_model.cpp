#include "collective/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "collective/reducer.hpp"

namespace syncopate {
namespace {

Link slower(const Link& one, const Link& other) {
  return {.latency = std::max(one.latency, other.latency),
          .seconds_per_byte = std::max(one.seconds_per_byte, other.seconds_per_byte)};
}

}  // namespace

CostModel::CostModel(Hosts hosts, const Links& links) : hosts_(std::move(hosts)), links_(links) {}

std::optional<double> CostModel::seconds(const ReducerSpec& reducer, double bytes) const {
  return reducer.seconds ? reducer.seconds(*this, bytes) : std::nullopt;
}

const ReducerSpec& CostModel::cheapest(double bytes) const {
  const ReducerSpec* cheapest = nullptr;
  double least = 0;
  for (const ReducerSpec* const reducer : all_reducers()) {
    const auto cost = seconds(*reducer, bytes);
    if (cost && (cheapest == nullptr || *cost < least)) {
      cheapest = reducer;
      least = *cost;
    }
  }
  if (cheapest == nullptr) {
    throw InternalError("no reducer has a cost in this group");
  }
  return *cheapest;
}

Link CostModel::step(const std::function<std::optional<Rank>(Rank)>& peer) const {
  Link slowest{};
  std::map<std::uint32_t, std::uint32_t> leaving;  // messages, by host
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const auto to = peer(Rank{rank});
    if (!to) {
      continue;
    }
    if (hosts_[rank] == hosts_[to->value]) {
      slowest = slower(slowest, links_.within);
      continue;
    }
    Link shared = links_.between;
    shared.seconds_per_byte *= ++leaving[hosts_[rank]];
    slowest = slower(slowest, shared);
  }
  return slowest;
}

Link CostModel::exchange(const RankBlock& block, std::uint32_t distance) const {
  return step([&](Rank rank) {
    const std::uint32_t position = rank.value - block.first;
    const bool inside = rank.value >= block.first && position < block.size;
    return inside ? std::optional(Rank{block.first + (position ^ distance)}) : std::nullopt;
  });
}

CostModel CostModel::among_leaders() const {
  Hosts hosts;
  for (const Rank leader : host_leaders(hosts_)) {
    hosts.push_back(hosts_[leader.value]);
  }
  return {std::move(hosts), links_};
}

std::size_t best_buckets(const AllreduceCost& cost, double bytes, double least) {
  const double most = std::floor(bytes / least);
  const double best = std::round(std::sqrt(bytes * cost.seconds_per_byte / cost.fixed));
  return static_cast<std::size_t>(std::max(1.0, std::min(best, most)));
}

std::vector<Rank> host_leaders(const Hosts& hosts) {
  std::vector<Rank> leaders;
  std::set<std::uint32_t> seen;
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (seen.insert(hosts[rank]).second) {
      leaders.push_back(Rank{rank});
    }
  }
  return leaders;
}

std::vector<Rank> ranks_on(const Hosts& hosts, std::uint32_t host) {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] == host) {
      ranks.push_back(Rank{rank});
    }
  }
  return ranks;
}

bool has_two_levels(const Hosts& hosts) {
  const std::size_t leaders = host_leaders(hosts).size();
  return leaders > 1 && leaders < hosts.size();
}

}  // namespace syncopate
