#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"
#include "collective/group.hpp"

namespace syncopate::cli {

/// One round, to be timed on every rank.
struct TimedRound {
  std::function<void()> before = {};  ///< not timed: makes ready
  std::function<void()> body;
};

/// What rounds took.
struct Timings {
  std::vector<std::vector<double>> seconds;  ///< of each rank, of each round
  double cpu_seconds = 0;                    ///< of all ranks together, a round, `before` included
  std::uint64_t rounds_in_all = 0;           ///< of each rank, those to warm up included

  /// Of each round: how long its slowest rank took.
  std::vector<double> slowest() const;
};

/// Runs rounds on all ranks of `group`, first some to warm up, for a tenth of the time, then those
/// that count. All ranks do as many, which rank 0 decides; at least `fewest_rounds` unless the options say
/// number. Every rank gets all results. Errors: those of collectives, and of the round.
Timings time_rounds(Group& group, const Effort& effort, const TimedRound& round);

inline constexpr std::uint64_t fewest_rounds = 5;

/// How many rounds fill what time is wanted, when one takes `seconds`.
std::uint64_t rounds_to_fill(const Effort& effort, double seconds);

/// `mine` of every rank, by rank; as long on each.
std::vector<std::vector<double>> gathered(Group& group, const std::vector<double>& mine);

/// Two vectors of these lie in the second-level cache of any CPU of this decade.
inline constexpr std::size_t cached_values = 24 * 1024;
/// So many passes over them take long enough to be timed together.
inline constexpr int cached_passes = 100;

/// Something that one core does, to be timed.
struct Case {
  nlohmann::ordered_json names;  ///< the figures that say which it is, first in its line
  std::size_t bytes;             ///< that count for its speed
  int passes;                    ///< that are timed together
  std::function<void()> pass;
  std::vector<double> seconds = {};  ///< of a pass, by round
};

/// Runs rounds of all cases in turn, so that what slows the machine down hits all of them.
void take_turns(std::vector<Case>& cases, const Effort& effort);

/// Its line: names, bytes, times, bytes per second, rounds.
nlohmann::ordered_json figures(const Case& done);

}  // namespace syncopate::cli
