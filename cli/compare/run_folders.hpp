#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/compare/figures.hpp"
#include "cli/compare/plan.hpp"
#include "job/launch/descriptor.hpp"

namespace syncopate::cli {

/// The folder of a comparison. A run whose result exists is not carried out again.
///
///     comparison.json   the common settings of the runs, and the figures so far
///     comparison.md     the tables
///     limit.toml        the cluster of one device
///     fastest-N.toml    the N fastest devices of the cluster
///     runs/NAME.toml    the configuration for `train`
///     runs/NAME/        its run folder
///     runs/NAME.diverged.json   instead of a summary
class RunFolders {
 public:
  explicit RunFolders(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path table() const { return root_ / "comparison.md"; }
  std::filesystem::path memory() const { return root_ / "comparison.json"; }
  std::filesystem::path limit() const { return root_ / "limit.toml"; }
  std::filesystem::path fastest(std::uint32_t count) const {
    return root_ / ("fastest-" + std::to_string(count) + ".toml");
  }
  std::filesystem::path run(const Run& run) const { return root_ / "runs" / run.name(); }
  std::filesystem::path config(const Run& run) const { return beside(run, ".toml"); }

  /// Makes the folder, or opens one that holds a comparison of this agreement. Errors: ConfigError
  /// if the folder holds anything else; DataError.
  void claim(const nlohmann::ordered_json& agreement) const;
  /// Locks the claimed folder against other comparisons until the returned descriptor is closed.
  /// Errors: ConfigError if another comparison has locked it; DataError.
  Descriptor lock() const;

  /// The figures of a run that has ended, from its summary or its divergence; empty for any other
  /// run. Errors: DataError.
  std::optional<RunFigures> figures(const Run& run, std::optional<double> target) const;
  /// Removes the files of a run that did not end, and writes its configuration. Errors: DataError.
  void prepare(const Run& run, const TrainConfig& config) const;
  void note_divergence(const Run& run, const std::string& error) const;

 private:
  std::filesystem::path beside(const Run& run, const char* suffix) const;

  std::filesystem::path root_;
};

}  // namespace syncopate::cli
