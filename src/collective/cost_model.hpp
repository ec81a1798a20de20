#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace syncopate {

/// The algorithms by which the ranks of a group reduce. `docs/how-it-works/collectives.md`
/// describes each.
enum class Algorithm {
  automatic,      ///< the cheapest of the others, by vector length, ranks and their links
  shm,            ///< collective/shared_allreduce.hpp
  ring,           ///< collective/ring_allreduce.hpp
  butterfly,      ///< collective/binary_blocks.hpp
  binary_blocks,  ///< collective/binary_blocks.hpp
  tree,           ///< collective/tree_allreduce.hpp
  two_level,      ///< collective/tree_allreduce.hpp
  mpi,            ///< transport/native_allreduce.hpp; only on request
};

/// The name on the command line: "auto", "binary-blocks".
std::string_view name_of(Algorithm algorithm);
/// Empty for an unknown name.
std::optional<Algorithm> algorithm_named(std::string_view name);

/// The cost of a message: α + bytes · β.
struct Link {
  double latency = 0;           ///< α, in seconds
  double seconds_per_byte = 0;  ///< β

  friend bool operator==(const Link&, const Link&) = default;
};

/// The parameters of the cost model for one group.
struct Links {
  Link within;                        ///< between ranks of one host
  Link between;                       ///< between one rank of a host and one of another
  double seconds_per_added_byte = 0;  ///< γ

  friend bool operator==(const Links&, const Links&) = default;
};

/// The host of each rank of a group, in any numbering.
using Hosts = std::vector<std::uint32_t>;

/// The lowest rank of each host, ascending.
std::vector<Rank> host_leaders(const Hosts& hosts);
/// The ranks on this host, ascending.
std::vector<Rank> ranks_on(const Hosts& hosts, std::uint32_t host);
/// True if the group has several hosts, and at least one of them has several ranks.
bool has_two_levels(const Hosts& hosts);

struct RankBlock;

/// The cost of an allreduce of n bytes with each algorithm, in seconds, in the model of α, β and γ.
/// Pure, and so the same on every rank that has the same links.
///
/// A step of an algorithm in which all ranks send at once costs as much as the slowest of its
/// messages. Ranks of one host that send to other hosts in the same step share its network card:
/// with m such ranks each byte costs m times as much. With p = ⌊log2 P⌋:
///
///     ring           2 (P − 1) α + 2 (P − 1)/P n β + (P − 1)/P n γ
///     butterfly      2 p α + 2 (P − 1)/P n β + (P − 1)/P n γ, only for P = 2^p
///     binary blocks  the same for P = 2^p; else computed from the time at which each block ends
///     tree           p (α + n β + n γ); plus 2 (α + n β) + n γ for P ≠ 2^p
///     two-level      on the host with the most ranks, m: ⌈log2 m⌉ (2 (α + n β) + n γ), plus the
///                    cheapest of the others among one rank of each host; only for several hosts,
///                    some of which have several ranks
///
/// Sources: Thakur et al. 2005; Rabenseifner 2004; Patarasuk & Yuan 2009.
class CostModel {
 public:
  /// `hosts`: at least one rank.
  CostModel(Hosts hosts, const Links& links);

  /// Empty if the algorithm does not support this group, and for shm and mpi, which have no model.
  std::optional<double> seconds(Algorithm algorithm, double bytes) const;
  /// Among equal costs the first of: tree, butterfly, binary blocks, ring, two-level.
  Algorithm cheapest(double bytes) const;

  /// The model of a group that consists of the host leaders.
  CostModel among_leaders() const;

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
  Link step(const std::function<std::optional<Rank>(Rank)>& peer) const;
  Link exchange(const RankBlock& block, std::uint32_t distance) const;
  Link up(const RankBlock& larger, const RankBlock& smaller) const;
  double halving(const RankBlock& block, double bytes) const;
  double adding(const RankBlock& block, double bytes) const;
  double ring(double bytes) const;
  double blocks(double bytes) const;
  double tree(double bytes) const;
  double two_level(double bytes) const;

  Hosts hosts_;
  Links links_;
};

/// The cost of an allreduce as a line: a constant, and a slope over its bytes.
struct AllreduceCost {
  double fixed = 0;  ///< seconds
  double seconds_per_byte = 0;
};

/// The number of equal buckets to cut `bytes` into, when buckets become ready one after the other
/// and are reduced while the next ones become ready. Each bucket costs `fixed`, a, once more. Only
/// the last bucket delays the caller, since no computation hides it: n β / k seconds with k
/// buckets. The sum k a + n β / k is least for k = √(n β / a). No bucket is shorter than `least`
/// bytes, unless it is the only one. Pure.
std::size_t best_buckets(const AllreduceCost& cost, double bytes, double least);

}  // namespace syncopate
