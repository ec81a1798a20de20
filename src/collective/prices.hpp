#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "collective/algorithm.hpp"
#include "collective/halving.hpp"

namespace syncopate {

/// What a message costs: α + bytes · β.
struct Link {
  double latency = 0;           ///< α, in seconds
  double seconds_per_byte = 0;  ///< β

  friend bool operator==(const Link&, const Link&) = default;
};

/// What a group's allreduce is made of.
struct Links {
  Link within;                        ///< between ranks of one host
  Link between;                       ///< between one rank of a host and one of another
  double seconds_per_added_byte = 0;  ///< γ

  friend bool operator==(const Links&, const Links&) = default;
};

/// What an allreduce of n bytes costs with each algorithm, in seconds, in the model of α, β and γ. Pure, and so
/// the same on every rank that has the same links.
///
/// A step of an algorithm in which all ranks send at once costs what the slowest of its messages does.
/// Ranks of one host who send to other hosts in the same step share its network card: to each the
/// bytes cost as many times more. With p = ⌊log2 P⌋:
///
///     ring           2 (P − 1) α + 2 (P − 1)/P n β + (P − 1)/P n γ
///     butterfly      2 p α + 2 (P − 1)/P n β + (P − 1)/P n γ, for P = 2^p alone
///     binary blocks  the same for P = 2^p; else by the moments at which each block is done
///     tree           p (α + n β + n γ); for P ≠ 2^p and 2 (α + n β) + n γ
///     two-level      on the host with the most ranks, m: ⌈log2 m⌉ (2 (α + n β) + n γ), and the cheapest
///                    of the others for one rank of each host; for more than one host alone, with
///                    more than one rank on some
///
/// Sources: Thakur et al. 2005; Rabenseifner 2004; Patarasuk & Yuan 2009.
class Prices {
 public:
  /// `hosts`: of each rank, at least one.
  Prices(std::vector<std::uint32_t> hosts, const Links& links);

  /// Empty where the group is none for the algorithm.
  std::optional<double> of(Algorithm algorithm, double bytes) const;
  /// Of those that cost the same, the first of: tree, butterfly, binary blocks, ring, two-level.
  Algorithm cheapest(double bytes) const;

  /// Of the first ranks of the hosts, among themselves.
  Prices among_firsts() const;

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
  Link step(const std::function<std::optional<Rank>(Rank)>& peer) const;
  Link exchange(const Halving::Block& block, std::uint32_t distance) const;
  Link climb(const Halving::Block& larger, const Halving::Block& smaller) const;
  double halving(const Halving::Block& block, double bytes) const;
  double adding(const Halving::Block& block, double bytes) const;
  double ring(double bytes) const;
  double blocks(double bytes) const;
  double tree(double bytes) const;
  double two_level(double bytes) const;

  std::vector<std::uint32_t> hosts_;
  Links links_;
};

/// What a sum takes: so many seconds, and more for each byte.
struct SumCost {
  double fixed = 0;
  double seconds_per_byte = 0;
};

/// Into how many buckets of equal length to cut `bytes` that become ready one after the other, so that sums hide
/// behind what makes them ready. Each bucket costs `fixed` once more, a; and only the last, for which
/// there is nothing to hide behind, is waited for: n β / k seconds of k buckets. The sum of both, k a + n β / k,
/// is least for k = √(n β / a). No bucket is shorter than `least` bytes, unless it is the only one. Pure.
std::size_t best_buckets(const SumCost& cost, double bytes, double least);

/// One rank of each host, in the order of the hosts' first ranks: the first of its ranks.
std::vector<Rank> first_ranks(const std::vector<std::uint32_t>& hosts);
/// The ranks on this host, ascending.
std::vector<Rank> ranks_on(const std::vector<std::uint32_t>& hosts, std::uint32_t host);

}  // namespace syncopate
