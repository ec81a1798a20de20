#include "collective/prices.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "collective/binary_blocks.hpp"

namespace syncopate {
namespace {

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

Prices::Prices(std::vector<std::uint32_t> hosts, const Links& links)
    : hosts_(std::move(hosts)), links_(links) {}

std::optional<double> Prices::of(Algorithm algorithm, double bytes) const {
  const std::size_t hosts = first_ranks(hosts_).size();
  switch (algorithm) {
    case Algorithm::automatic: return of(cheapest(bytes), bytes);
    case Algorithm::mpi:                       // as MPI has it
    case Algorithm::shm: return std::nullopt;  // taken unasked, wherever it can be had
    case Algorithm::ring: return ring(bytes);
    case Algorithm::butterfly:
      return std::has_single_bit(size()) ? std::optional(blocks(bytes)) : std::nullopt;
    case Algorithm::binary_blocks: return blocks(bytes);
    case Algorithm::tree: return tree(bytes);
    case Algorithm::two_level:
      return hosts > 1 && hosts < size() ? std::optional(two_level(bytes)) : std::nullopt;
  }
  return std::nullopt;
}

Algorithm Prices::cheapest(double bytes) const {
  constexpr std::array others{Algorithm::butterfly, Algorithm::binary_blocks, Algorithm::ring,
                              Algorithm::two_level};
  Algorithm cheapest = Algorithm::tree;
  for (const Algorithm other : others) {
    const auto price = of(other, bytes);
    if (price && *price < *of(cheapest, bytes)) {
      cheapest = other;
    }
  }
  return cheapest;
}

/// The slowest of the messages that ranks send to their peers at once.
Link Prices::step(const std::function<std::optional<Rank>(Rank)>& peer) const {
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

Link Prices::exchange(const Halving::Block& block, std::uint32_t distance) const {
  return step([&](Rank rank) {
    const std::uint32_t place = rank.value - block.first;
    const bool inside = rank.value >= block.first && place < block.size;
    return inside ? std::optional(Rank{block.first + (place ^ distance)}) : std::nullopt;
  });
}

Link Prices::climb(const Halving::Block& larger, const Halving::Block& smaller) const {
  return step([&](Rank rank) {
    const std::uint32_t place = rank.value - smaller.first;
    const bool inside = rank.value >= smaller.first && place < smaller.size;
    return inside ? std::optional(Rank{larger.first + place}) : std::nullopt;
  });
}

/// One way: the half in the first step, down to one share.
double Prices::halving(const Halving::Block& block, double bytes) const {
  double seconds = 0;
  for (std::uint32_t distance = 1; distance < block.size; distance *= 2) {
    seconds += time_of(exchange(block, distance), bytes / (2 * distance));
  }
  return seconds;
}

double Prices::adding(const Halving::Block& block, double bytes) const {
  return (1 - 1.0 / block.size) * bytes * links_.seconds_per_added_byte;
}

double Prices::ring(double bytes) const {
  const Link link = step([this](Rank rank) { return Rank{(rank.value + 1) % size()}; });
  const double steps = size() - 1;
  const double chunk = bytes / size();
  return steps * (2 * time_of(link, chunk) + chunk * links_.seconds_per_added_byte);
}

/// Blocks in the order in which they climb, and then descend. A block sends its shares down before it
/// gathers, through the same card.
double Prices::blocks(double bytes) const {
  const std::vector<Halving::Block> all = blocks_of(size());
  double summed = 0;  // when the sums of a block are complete, as far as they come from below
  for (std::size_t i = all.size(); i-- > 0;) {
    const double own = halving(all[i], bytes) + adding(all[i], bytes);
    const double from_below =
        i + 1 == all.size() ? 0
                            : summed + time_of(climb(all[i], all[i + 1]), bytes / all[i + 1].size) +
                                  bytes / all[i].size * links_.seconds_per_added_byte;
    summed = std::max(own, from_below);
  }
  double done = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double share = bytes / all[i].size;
    summed += i == 0 ? 0 : time_of(climb(all[i - 1], all[i]), share);
    const double handing_down =
        i + 1 == all.size() ? 0 : share * climb(all[i], all[i + 1]).seconds_per_byte;
    done = std::max(done, summed + handing_down + halving(all[i], bytes));
  }
  return done;
}

double Prices::tree(double bytes) const {
  const Halving::Block power{.first = 0, .size = std::bit_floor(size())};
  const double added = bytes * links_.seconds_per_added_byte;
  double seconds = floor_log2(size()) * added;
  for (std::uint32_t distance = 1; distance < power.size; distance *= 2) {
    seconds += time_of(exchange(power, distance), bytes);
  }
  if (power.size < size()) {
    const Link link = step([&](Rank rank) {
      return rank.value >= power.size ? std::optional(Rank{rank.value - power.size}) : std::nullopt;
    });
    seconds += 2 * time_of(link, bytes) + added;
  }
  return seconds;
}

double Prices::two_level(double bytes) const {
  std::map<std::uint32_t, std::uint32_t> ranks;  // by host
  std::uint32_t most = 0;
  for (const std::uint32_t host : hosts_) {
    most = std::max(most, ++ranks[host]);
  }
  const double added = bytes * links_.seconds_per_added_byte;
  return ceil_log2(most) * (2 * time_of(links_.within, bytes) + added) +
         *among_firsts().of(Algorithm::automatic, bytes);
}

Prices Prices::among_firsts() const {
  std::vector<std::uint32_t> hosts;
  for (const Rank first : first_ranks(hosts_)) {
    hosts.push_back(hosts_[first.value]);
  }
  return {std::move(hosts), links_};
}

std::size_t best_buckets(const SumCost& cost, double bytes, double least) {
  const double most = std::floor(bytes / least);
  const double best = std::round(std::sqrt(bytes * cost.seconds_per_byte / cost.fixed));
  return static_cast<std::size_t>(std::max(1.0, std::min(best, most)));
}

std::vector<Rank> first_ranks(const std::vector<std::uint32_t>& hosts) {
  std::vector<Rank> firsts;
  std::set<std::uint32_t> seen;
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (seen.insert(hosts[rank]).second) {
      firsts.push_back(Rank{rank});
    }
  }
  return firsts;
}

std::vector<Rank> ranks_on(const std::vector<std::uint32_t>& hosts, std::uint32_t host) {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] == host) {
      ranks.push_back(Rank{rank});
    }
  }
  return ranks;
}

}  // namespace syncopate
