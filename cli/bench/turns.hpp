#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/command.hpp"

namespace syncopate::cli {

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
