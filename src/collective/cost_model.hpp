#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.hpp"

namespace syncopate {

struct ReducerSpec;

/// The cost of a message: α + bytes · β.
struct Link {
  double latency = 0;           ///< α, in seconds
  double seconds_per_byte = 0;  ///< β

  double seconds(double bytes) const { return latency + bytes * seconds_per_byte; }

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

/// Neighbouring ranks of a group; position q is rank first + q.
struct RankBlock {
  std::uint32_t first = 0;
  std::uint32_t size = 1;
};

/// What the formulas of reducers (`ReducerSpec::seconds`) are made of: the cost of one step in a
/// group, in the model of α, β and γ. Pure, and so the same on every rank that has the same links.
///
/// A step of a reducer in which all ranks send at once costs as much as the slowest of its
/// messages. Ranks of one host that send to other hosts in the same step share its network card:
/// with m such ranks each byte costs m times as much.
///
/// Sources: Thakur et al. 2005; Rabenseifner 2004; Patarasuk & Yuan 2009.
class CostModel {
 public:
  /// `hosts`: at least one rank.
  CostModel(Hosts hosts, const Links& links);

  std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
  const Hosts& hosts() const { return hosts_; }
  const Links& links() const { return links_; }
  double adding(double bytes) const { return bytes * links_.seconds_per_added_byte; }

  /// The slowest of the messages that ranks send at once, each to the peer that it has.
  Link step(const std::function<std::optional<Rank>(Rank)>& peer) const;
  /// The same for the ranks of a block, of which those whose positions differ by the bits of
  /// `distance` exchange messages.
  Link exchange(const RankBlock& block, std::uint32_t distance) const;

  /// Empty for a reducer that does not support this group, or that has no model.
  std::optional<double> seconds(const ReducerSpec& reducer, double bytes) const;
  const ReducerSpec& cheapest(double bytes) const;

  /// The model of a group that consists of the host leaders.
  CostModel among_leaders() const;

 private:
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
