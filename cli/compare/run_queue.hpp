#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "cli/compare/comparison_progress.hpp"
#include "cli/compare/forecast.hpp"
#include "cli/compare/run_folders.hpp"
#include "cli/compare/train_process.hpp"

namespace syncopate::cli {

/// Carries out runs as processes, several in parallel, in their order. Skips runs that an earlier
/// comparison finished.
///
/// Thread: construct and use it while this process has one thread.
class RunQueue {
 public:
  struct Options {
    const ComparisonPlan& plan;
    const RunFolders& folders;
    std::function<Workload(const Run&)> workload;
    Forecast& forecast;
    ComparisonProgress& progress;
    std::string how_to_go_on;  ///< the command that continues the comparison
  };

  explicit RunQueue(Options options) : options_(std::move(options)) {}

  /// Returns the figures of the runs, in the same order. `width`: the number of parallel processes.
  ///
  /// Errors: Cancelled if the user interrupts; ConfigError or DataError if a run was refused; Error
  ///         if a run failed other than by diverging. All processes have then ended.
  std::vector<RunFigures> carry_out(const std::vector<Run>& runs, std::size_t width);

 private:
  struct Active {
    Run run;
    std::unique_ptr<TrainProcess> process;
    TimePoint begun;
  };

  void look_up(const Run& run);
  void start(const Run& run);
  void wait_for_something();
  void heed_signals();
  void conclude(const Active& ended);
  void report(const Run& run, const RunFigures& figures, bool earlier);
  void show_progress();

  Options options_;
  SignalInbox signals_;
  Timer refresh_;
  std::deque<Run> waiting_;
  std::vector<Active> active_;
  std::set<std::string> reported_;  ///< names of runs
};

}  // namespace syncopate::cli
