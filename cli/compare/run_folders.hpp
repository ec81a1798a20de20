#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/compare/figures.hpp"
#include "cli/compare/plan.hpp"
#include "job/launch/descriptor.hpp"

namespace syncopate::cli {

/// The folder of a comparison, which is also its memory: what lies there is not done again.
///
///     comparison.json   what runs agree in, and the figures so far
///     comparison.md     the tables
///     limit.toml        the cluster of one device
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
  std::filesystem::path run(const Run& run) const { return root_ / "runs" / run.name(); }
  std::filesystem::path config(const Run& run) const { return beside(run, ".toml"); }

  /// Makes the folder, or takes one that holds a comparison of this agreement.
  /// Errors: ConfigError, for one that holds something else; DataError.
  void claim(const nlohmann::ordered_json& agreement) const;
  /// Keeps other comparisons out of the claimed folder while what is returned lives.
  /// Errors: ConfigError, where another is at work in it; DataError.
  Descriptor lock() const;

  /// What a run came to, if it has ended: by its summary, or by having diverged.
  /// Errors: DataError.
  std::optional<RunFigures> figures(const Run& run, std::optional<double> target) const;
  /// Clears what is left of a run that did not end, and writes its configuration. Errors:
  /// DataError.
  void prepare(const Run& run, const TrainConfig& config) const;
  void note_divergence(const Run& run, const std::string& error) const;

 private:
  std::filesystem::path beside(const Run& run, const char* suffix) const;

  std::filesystem::path root_;
};

}  // namespace syncopate::cli
