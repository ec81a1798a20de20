#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/event_file.hpp"
#include "report/run_folder.hpp"
#include "report/scoreboard.hpp"
#include "runtime/job_view.hpp"
#include "telemetry/lenient_lines.hpp"
#include "telemetry/metrics.hpp"
#include "telemetry/thinning.hpp"

namespace syncopate {

/// The curves of a run for TensorBoard. Its steps are rounds. Its times are the wall time at which
/// the process began plus the seconds of training since, so that TensorBoard's axis "relative"
/// shows the training clock, in virtual time, too.
///
/// If the file cannot be written, the job continues: `report` gets the reason, once.
///
/// Thread: one at a time.
class ScalarLog {
 public:
  struct Options {
    const RunFolder& folder;
    double wall_time = 0;  ///< seconds since 1970 at which this process began
    LenientLines::Report report;
  };

  explicit ScalarLog(Options options);

  void began(const View& view);
  void evaluated(const EvaluationResult& result);
  /// `job`: the metrics of the member that keeps the model; `workers`: of each worker.
  void progressed(const MetricValues& job, const std::map<Rank, MetricValues>& workers);

 private:
  void write(double training_seconds, double round, const std::vector<Scalar>& scalars);

  Options options_;
  std::optional<EventFile> file_;
  std::map<Rank, std::string> names_;  ///< "worker 0 (cpu)"
  std::optional<double> began_at_;     ///< reading of the training clock at the first event
  double last_round_ = 0;
  Thinning thinning_;
  bool reported_ = false;
};

}  // namespace syncopate
