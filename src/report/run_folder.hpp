#pragma once

#include <cstdint>
#include <filesystem>

#include "base/ids.hpp"

namespace syncopate {

/// Where a run keeps what it leaves.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  /// Makes the folder and its subfolders.
  /// Errors: ConfigError, when it already holds a run; DataError, when it cannot be made.
  void create() const;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path summary() const { return root_ / "summary.json"; }
  std::filesystem::path evaluations() const { return root_ / "evaluations.jsonl"; }
  std::filesystem::path pace_log() const { return root_ / "pacer.jsonl"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path worker_log(Rank rank) const;

 private:
  std::filesystem::path root_;
};

/// Drops the lines of a log of JSON objects whose `round` is above `round`: what a resumed run
/// will write again. A line that cannot be read, as a crash may leave it at the end, is dropped too.
void keep_rounds_up_to(const std::filesystem::path& log, std::uint64_t round);

}  // namespace syncopate
