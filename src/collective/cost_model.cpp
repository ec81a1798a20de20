#include "collective/cost_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "collective/binary_blocks.hpp"

namespace syncopate {
namespace {

using NamedAlgorithm = std::pair<Algorithm, std::string_view>;

constexpr std::array<NamedAlgorithm, 8> names{{{Algorithm::automatic, "auto"},
                                               {Algorithm::shm, "shm"},
                                               {Algorithm::ring, "ring"},
                                               {Algorithm::butterfly, "butterfly"},
                                               {Algorithm::binary_blocks, "binary-blocks"},
                                               {Algorithm::tree, "tree"},
                                               {Algorithm::two_level, "two-level"},
                                               {Algorithm::mpi, "mpi"}}};

double time_of(const Link& link, double bytes) {
  return link.latency + bytes * link.seconds_per_byte;
}

Link slower(const Link& one, const Link& other) {
  return {.latency = std::max(one.latency, other.latency),
          .seconds_per_byte = std::max(one.seconds_per_byte, other.seconds_per_byte)};
}

std::uint32_t floor_log2(std::uint32_t value) {
  return static_cast<std::uint32_t>(std::bit_width(value)) - 1;
}

std::uint32_t ceil_log2(std::uint32_t value) {
  return static_cast<std::uint32_t>(std::bit_width(value - 1));
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  return std::find_if(names.begin(), names.end(),
                      [&](const NamedAlgorithm& named) { return named.first == algorithm; })
      ->second;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  const auto* const found =
      std::find_if(names.begin(), names.end(),
                   [&](const NamedAlgorithm& named) { return named.second == name; });
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

CostModel::CostModel(Hosts hosts, const Links& links) : hosts_(std::move(hosts)), links_(links) {}

std::optional<double> CostModel::seconds(Algorithm algorithm, double bytes) const {
  switch (algorithm) {
    case Algorithm::automatic: return seconds(cheapest(bytes), bytes);
    case Algorithm::mpi:
    case Algorithm::shm: return std::nullopt;
    case Algorithm::ring: return ring(bytes);
    case Algorithm::butterfly:
      return std::has_single_bit(size()) ? std::optional(blocks(bytes)) : std::nullopt;
    case Algorithm::binary_blocks: return blocks(bytes);
    case Algorithm::tree: return tree(bytes);
    case Algorithm::two_level:
      return has_two_levels(hosts_) ? std::optional(two_level(bytes)) : std::nullopt;
  }
  return std::nullopt;
}

Algorithm CostModel::cheapest(double bytes) const {
  constexpr std::array others{Algorithm::butterfly, Algorithm::binary_blocks, Algorithm::ring,
                              Algorithm::two_level};
  Algorithm cheapest = Algorithm::tree;
  for (const Algorithm other : others) {
    const auto cost = seconds(other, bytes);
    if (cost && *cost < *seconds(cheapest, bytes)) {
      cheapest = other;
    }
  }
  return cheapest;
}

/// The slowest of the messages that ranks send to their peers at once.
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

Link CostModel::up(const RankBlock& larger, const RankBlock& smaller) const {
  return step([&](Rank rank) {
    const std::uint32_t position = rank.value - smaller.first;
    const bool inside = rank.value >= smaller.first && position < smaller.size;
    return inside ? std::optional(Rank{larger.first + position}) : std::nullopt;
  });
}

/// The cost of one direction: half of the vector in the first step, one share in the last.
double CostModel::halving(const RankBlock& block, double bytes) const {
  double total = 0;
  for (std::uint32_t distance = 1; distance < block.size; distance *= 2) {
    total += time_of(exchange(block, distance), bytes / (2 * distance));
  }
  return total;
}

double CostModel::adding(const RankBlock& block, double bytes) const {
  return (1 - 1.0 / block.size) * bytes * links_.seconds_per_added_byte;
}

double CostModel::ring(double bytes) const {
  const Link link = step([this](Rank rank) { return Rank{(rank.value + 1) % size()}; });
  const double steps = size() - 1;
  const double chunk = bytes / size();
  return steps * (2 * time_of(link, chunk) + chunk * links_.seconds_per_added_byte);
}

/// The blocks reduce one after another, from the last to the first; then the results travel back. A
/// block sends its shares down before it gathers, through the same network card.
double CostModel::blocks(double bytes) const {
  const std::vector<RankBlock> all = binary_blocks_of(size());
  double reduced = 0;  // the time at which a block has reduced its own values and those from below
  for (std::size_t i = all.size(); i-- > 0;) {
    const double own = halving(all[i], bytes) + adding(all[i], bytes);
    const double from_below =
        i + 1 == all.size() ? 0
                            : reduced + time_of(up(all[i], all[i + 1]), bytes / all[i + 1].size) +
                                  bytes / all[i].size * links_.seconds_per_added_byte;
    reduced = std::max(own, from_below);
  }
  double done = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double share = bytes / all[i].size;
    reduced += i == 0 ? 0 : time_of(up(all[i - 1], all[i]), share);
    const double sending_down =
        i + 1 == all.size() ? 0 : share * up(all[i], all[i + 1]).seconds_per_byte;
    done = std::max(done, reduced + sending_down + halving(all[i], bytes));
  }
  return done;
}

double CostModel::tree(double bytes) const {
  const RankBlock power{.first = 0, .size = std::bit_floor(size())};
  const double added = bytes * links_.seconds_per_added_byte;
  double total = floor_log2(size()) * added;
  for (std::uint32_t distance = 1; distance < power.size; distance *= 2) {
    total += time_of(exchange(power, distance), bytes);
  }
  if (power.size < size()) {
    const Link link = step([&](Rank rank) {
      return rank.value >= power.size ? std::optional(Rank{rank.value - power.size}) : std::nullopt;
    });
    total += 2 * time_of(link, bytes) + added;
  }
  return total;
}

double CostModel::two_level(double bytes) const {
  std::map<std::uint32_t, std::uint32_t> ranks;  // by host
  std::uint32_t most = 0;
  for (const std::uint32_t host : hosts_) {
    most = std::max(most, ++ranks[host]);
  }
  const double added = bytes * links_.seconds_per_added_byte;
  return ceil_log2(most) * (2 * time_of(links_.within, bytes) + added) +
         *among_leaders().seconds(Algorithm::automatic, bytes);
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
