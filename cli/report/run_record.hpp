#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/figures.hpp"
#include "report/scoreboard.hpp"

namespace syncopate::cli {

/// A worker's times until the end of a round: sums since its process began, in seconds.
struct RoundTimes {
  double end = 0;  ///< training clock
  double data = 0;
  double compute = 0;
  double communicate = 0;
  double wait = 0;
};

/// A time to the target over seeds, on that many of the fastest devices.
struct TimeOnDevices {
  double devices = 0;
  double median = 0;
  double least = 0;
  double most = 0;
};

/// The contents of a run folder (`docs/reference/records.md`), as far as they can be read.
struct RunRecord {
  std::filesystem::path folder;
  std::map<std::string, std::string> options = {};  ///< of `config.toml`, by the keys there
  /// "imported" or "no-config" if `options` may lack options of the run; else empty.
  std::string partly = {};
  std::string label = {};                 ///< of the contestant in a comparison; else empty
  std::filesystem::path comparison = {};  ///< folder of that comparison
  /// The contestant's times to the target on the fastest devices, by their number; empty: not
  /// tried.
  std::vector<TimeOnDevices> on_fewer_devices = {};
  std::string cluster = {};  ///< name of the cluster file; empty: real devices
  std::uint64_t seed = 0;
  std::string state = {};  ///< "every epoch is done", "running", "ended by an error"
  std::optional<double> target = {};
  std::vector<EvaluationResult> evaluations = {};
  std::vector<std::vector<RoundTimes>> workers = {};  ///< by rank
  /// `summary.json`, with a neutral value in each field that the file lacks; null without a file.
  nlohmann::ordered_json summary = {};
  /// The figures in `comparison.json`, for a run without its folder.
  std::optional<RunFigures> kept = {};
  std::vector<std::string> lacks = {};  ///< fields that the summary lacks
  std::vector<std::string> notes = {};  ///< what is unusual about the run, in words
};

/// True if the folder has one of the files that only runs write.
bool is_run_folder(const std::filesystem::path& folder);

/// Reads a run folder: of a run that ended, that still runs, that crashed, or of another version.
/// Damaged and missing parts become notes. Errors: ConfigError if the folder is not that of a run.
RunRecord read_run(const std::filesystem::path& folder);

}  // namespace syncopate::cli
