#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/compare/contestant.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

/// `syncopate compare`, read and checked.
struct CompareCommand {
  CommonOptions common;
  std::vector<Contestant> contestants = {};
  std::uint32_t seeds = 1;
  bool grid_in_virtual_time = false;
  bool until_target = false;
  bool with_limit = false;  ///< needs a cluster file
  std::uint32_t jobs = 1;   ///< virtual runs at a time
  std::filesystem::path folder;
  OutputOptions output = {};
  std::string words = {};  ///< the command as it may be typed again
  std::string version = {};
};

/// Tries the learning rates, runs what counts, and shows the tables. Returns the exit status.
/// Errors: as `RunQueue::carry_out`; ConfigError, for a folder that holds another comparison.
int compare(const CompareCommand& command);

}  // namespace syncopate::cli
