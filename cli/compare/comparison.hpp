#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/compare/contestant.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

/// The parsed command line of `syncopate compare`.
struct CompareCommand {
  CommonOptions common;
  std::vector<Contestant> contestants = {};
  std::uint32_t seeds = 1;
  bool grid_in_virtual_time = false;
  bool until_target = false;
  bool with_limit = false;  ///< needs a cluster file
  bool with_fast = false;   ///< baselines on only the fast devices; needs a cluster file
  bool prefixes = false;    ///< each contestant also on fewer devices; needs a cluster file
  std::uint32_t jobs = 1;   ///< virtual runs in parallel
  std::filesystem::path folder;
  OutputOptions output = {};
  std::string words = {};  ///< the command line that continues the comparison
  std::string version = {};
};

/// Tries the learning rates, carries out the counted runs, and prints the tables. Returns the exit
/// status. Errors: those of `RunQueue::carry_out`; ConfigError if the folder holds another
/// comparison.
int compare(const CompareCommand& command);

}  // namespace syncopate::cli
