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

/// Prints the progress of a comparison: one line per run, and on a terminal a status line below,
/// which is redrawn. Prints nothing with `--quiet`, and one object per run with `--json`.
class ComparisonProgress {
 public:
  /// `runs`: the number of runs in all.
  ComparisonProgress(const OutputOptions& output, std::size_t runs, std::optional<double> target);
  ~ComparisonProgress();
  ComparisonProgress(const ComparisonProgress&) = delete;
  ComparisonProgress& operator=(const ComparisonProgress&) = delete;

  void note(const std::string& text);
  /// Reports that a run has ended; each run is reported once. `earlier`: an interrupted comparison
  /// carried it out.
  void ended(const Run& run, const RunFigures& figures, bool earlier);
  /// Shows the progress of the active runs, and the remaining seconds if they are known.
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
