#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"
#include "collective/group.hpp"

namespace syncopate::cli {

/// One round, which every rank measures.
struct TimedRound {
  std::function<void()> before = {};  ///< prepares the round, not timed
  std::function<void()> body;
};

/// The times of rounds.
struct Timings {
  std::vector<std::vector<double>> seconds;  ///< of each rank, of each round
  double cpu_seconds = 0;                    ///< per round, over all ranks, including `before`
  std::uint64_t rounds_in_all = 0;           ///< of each rank, including the warm-up rounds

  /// For each round, the time of its slowest rank.
  std::vector<double> slowest() const;
};

/// Runs rounds on all ranks of `group`: first some to warm up, for a tenth of the time, then the
/// counted ones. Rank 0 determines the number of rounds, which is equal on all ranks, and at least
/// `fewest_rounds` unless the options give it. Every rank gets all results. Errors: those of
/// collectives, and of the round.
Timings time_rounds(Group& group, const Effort& effort, const TimedRound& round);

inline constexpr std::uint64_t fewest_rounds = 5;

/// The number of rounds that fill the time of `effort`, when one takes `seconds`.
std::uint64_t rounds_to_fill(const Effort& effort, double seconds);

/// `mine` of every rank, by rank; it has the same length on all ranks.
std::vector<std::vector<double>> gathered(Group& group, const std::vector<double>& mine);

/// Two vectors of this length fit into the second-level cache of any recent CPU.
inline constexpr std::size_t cached_values = 24 * 1024;
/// This number of passes over them takes long enough for one measurement.
inline constexpr int cached_passes = 100;

/// A piece of work to measure on one core.
struct Case {
  nlohmann::ordered_json names;  ///< the figures that identify it, first in its line
  std::size_t bytes;             ///< of a pass, for its speed
  int passes;                    ///< of one measurement
  std::function<void()> pass;
  std::vector<double> seconds = {};  ///< of a pass, by round
};

/// Runs rounds of all cases in turn, so that a slowdown of the machine affects all of them.
void take_turns(std::vector<Case>& cases, const Effort& effort);

/// The line of a case: names, bytes, times, bytes per second, rounds.
nlohmann::ordered_json figures(const Case& done);

}  // namespace syncopate::cli
