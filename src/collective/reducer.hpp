#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/group.hpp"
#include "kernels/values.hpp"

namespace syncopate {

class CostModel;
class NativeAllreduce;

/// What one rank contributes to a sum over all ranks, which replaces it.
struct Contribution {
  Values values;          ///< as many on every rank, of the same type
  float factor = 1;       ///< of this rank's values, which are scaled where they are touched first
  std::size_t first = 0;  ///< their offset in the whole vector, for a reducer that has a memory
};

/// One way to reduce the values of all ranks of a group to their sum.
///
/// Invariant: results have the same bits on every rank.
/// Thread:    one collective at a time per group.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Replaces the values by the sum of `factor` · `values` over all ranks.
  /// Errors: PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
  virtual void reduce(const Contribution& mine) = 0;
};

/// A reducer that leaves the sum among the host leaders to another one (`two-level`) calls this
/// with the leaders' group, on each of them.
using AmongLeaders = std::function<void(Group& leaders, const Contribution& mine)>;

/// What a reducer may use beside its group.
struct ReducerContext {
  AmongLeaders among_leaders = {};
  NativeAllreduce* of_program = nullptr;  ///< that of the program; null: it has none
};

/// A way to reduce, declared once, in its own file. `--aggregate`, `bench` and the plan read this.
struct ReducerSpec {
  std::string_view name;  ///< as `--aggregate` reads it: "binary-blocks"

  /// The time for `bytes` in the group of the model; empty: it is no choice in this group. Null:
  /// there is no model, so that a plan never chooses it by its cost.
  std::optional<double> (*seconds)(const CostModel& model, double bytes) = nullptr;

  /// Needs memory that all ranks share, and is then chosen before all others.
  bool in_memory = false;
  /// Leaves the sum among host leaders to the reducer that is cheapest for these.
  bool has_two_levels = false;
  /// Reduces among hosts: ranks of one host share memory, or reduce to its leader first.
  bool among_hosts = false;
  /// Is a reducer of programs that have a process group of their own, and not of `train`.
  bool of_program = false;
  /// The reducer that takes its place in a group of this many ranks; null: none does.
  const ReducerSpec* (*stand_in)(std::uint32_t ranks) = nullptr;
  std::string_view ranks = "";      ///< the numbers for which none does: "a power of two"
  std::string_view transport = "";  ///< the only one over which it works; empty: all
  /// True for the values that it takes; null: only float32 in the host's memory.
  bool (*takes)(const Values& values) = nullptr;

  /// A collective. Null where it cannot serve the group, which is the same on all ranks; only one
  /// that is `in_memory` may return it. `group` outlives the reducer. Errors: ConfigError if it
  /// cannot serve such groups at all.
  std::unique_ptr<Reducer> (*make)(Group& group, const ReducerContext& context) = nullptr;
};

/// Every reducer of `collective/reducers.inc`, in the order of help texts. Of equal costs the first
/// counts.
std::span<const ReducerSpec* const> all_reducers();

/// "auto", and the name of each.
std::vector<std::string_view> reducer_names();
/// The same without those of programs.
std::vector<std::string_view> own_reducer_names();

/// Null: no reducer has this name.
const ReducerSpec* find_reducer(std::string_view name);

/// Refuses a reducer that cannot serve a group of this many workers over the transport of this
/// name. Errors: ConfigError.
void check_request(const ReducerSpec& reducer, std::uint32_t workers, std::string_view transport);

}  // namespace syncopate
