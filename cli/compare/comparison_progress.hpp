#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/compare/figures.hpp"
#include "cli/compare/plan.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

/// "about 40 s", "about 12 min", "about 2.5 h".
std::string about(double seconds);

/// Tells how a comparison goes on: a line a run, and below it, where standard output is a terminal,
/// one that is redrawn. With `--quiet` nothing, with `--json` an object a run.
class ComparisonProgress {
 public:
  /// `runs`: how many there are in all.
  ComparisonProgress(const OutputOptions& output, std::size_t runs, std::optional<double> target);
  ~ComparisonProgress();
  ComparisonProgress(const ComparisonProgress&) = delete;
  ComparisonProgress& operator=(const ComparisonProgress&) = delete;

  void note(const std::string& text);
  /// `earlier`: by a comparison that was broken off. Each run is reported once.
  void ended(const Run& run, const RunFigures& figures, bool earlier);
  /// Where the runs under way stand, and how many seconds are left, if that is known.
  void under_way(const std::string& what, std::optional<double> remaining);

 private:
  void erase();
  void line(const std::string& text);

  bool json_;
  bool quiet_;
  bool redraws_;
  std::size_t runs_;
  std::size_t ended_ = 0;
  std::optional<double> target_;
  bool drawn_ = false;
};

}  // namespace syncopate::cli
