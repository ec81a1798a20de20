#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "codec/codec.hpp"
#include "collective/cost_model.hpp"
#include "collective/reducer.hpp"

namespace syncopate {

/// Decides how a group reduces a vector: by which reducer, at which cost, and how to describe it.
///
/// Pure: its decisions follow from the options, the hosts of the ranks and the facts that it is
/// given. The ranks of a group have the same facts, and so make the same decisions without a
/// message.
///
/// The order of decisions:
///
///     1. shared memory, where the user requests it, or, on one host, a reducer among hosts or none
///     2. the reducer that the user requests, or the one that takes its place in such a group
///     3. else the cheapest by the cost model of the measured links
///
/// Thread: one at a time.
class AllreducePlan {
 public:
  struct Options {
    const ReducerSpec* requested = nullptr;  ///< null: the cheapest
    Compression compression{};
    bool compress_remote = false;  ///< compress only what crosses between hosts
  };

  /// `hosts`: at least one rank.
  AllreducePlan(const Options& options, Hosts hosts);

  /// The reducer in memory that all ranks share.
  static const ReducerSpec& in_memory();
  /// True if the plan must know whether all ranks share memory before it decides.
  bool wants_shared_memory() const;
  void set_shared_memory(bool all_reach_it) { shares_memory_ = all_reach_it; }

  /// True if a decision about uncompressed vectors needs measured links.
  bool wants_links() const;
  /// The length of the long messages to measure links with before a decision about `bytes`; empty
  /// if the known links were measured with long enough messages.
  std::optional<std::size_t> probe_bytes(std::size_t bytes) const;
  void set_links(const Links& links, std::size_t probe_bytes);
  void forget_links();

  /// The reducer of an uncompressed vector of at least one byte, in a group of two or more.
  /// Errors: ConfigError if shared memory is requested and not all ranks reach it.
  const ReducerSpec& reducer(std::size_t bytes);
  /// The reducer among the host leaders, the upper of two levels. Called when links are known,
  /// unless one among hosts is requested.
  const ReducerSpec& reducer_among_leaders(std::size_t bytes);

  /// True if this group compresses compressible vectors.
  bool compresses() const;
  /// True if each host reduces without compression, and only the host leaders compress.
  bool compresses_among_leaders() const;

  /// The cost of reducing vectors of about `bytes`, compressed if they may be. It uses measured
  /// links if the plan chooses the reducer or vectors are compressed; else assumed links of a
  /// data centre, so that runs with a requested reducer repeat to the last bit. Reducers
  /// without a model have assumed costs, too.
  AllreduceCost cost(std::size_t bytes);

  /// "ring: 4 ranks, 44.7 MB, links of 35 µs and 2.4 GB/s"
  std::string describe(const ReducerSpec& reducer, std::size_t bytes) const;
  /// "int8 between hosts: 4 ranks, 44.7 MB, links of 35 µs and 2.4 GB/s". Called when links are
  /// known.
  std::string describe_compressed(std::size_t bytes) const;

 private:
  using Cache = std::map<std::size_t, const ReducerSpec*>;  // by bytes: an evaluation takes time

  std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
  bool requests_memory() const {
    return options_.requested != nullptr && options_.requested->in_memory;
  }
  bool shares_memory_first() const {
    return options_.requested == nullptr || options_.requested->among_hosts;
  }
  AllreduceCost compressed_cost(std::size_t bytes) const;
  std::string links_in_words() const;

  Options options_;
  Hosts hosts_;
  bool on_one_host_;
  bool shares_memory_ = false;
  std::optional<Links> links_;
  std::size_t links_probe_bytes_ = 0;
  Cache cheapest_;
  Cache cheapest_among_leaders_;
};

}  // namespace syncopate
