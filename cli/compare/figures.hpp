#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/view/statistics.hpp"

namespace syncopate::cli {

/// The figures of a device in a run, or their medians over runs. Ratios are shares of the training
/// clock.
struct DeviceFigures {
  std::string name;
  double computing = 0;
  double communication = 0;
  double wait = 0;
  double throughput = 0;
};

/// The job's values of the metrics that have a label (`telemetry/metrics.hpp`), by their names in
/// `summary.json`.
using Totals = std::map<std::string, double>;

/// The figures of one run.
struct RunFigures {
  std::optional<double> time_to_target = {};  ///< seconds of training clock
  std::optional<double> accuracy = {};        ///< of the last test; empty: diverged or never tested
  std::optional<double> learning_rate = {};
  std::optional<std::uint32_t> batch_size = {};  ///< where several were tried
  double training_seconds = 0;
  double samples = 0;
  double throughput = 0;
  double cluster_efficiency = 0;
  Totals totals = {};          ///< of the session
  double session_samples = 0;  ///< the samples that `totals` cover
  double median_staleness = 0;
  double p99_staleness = 0;
  double most_staleness = 0;
  std::vector<DeviceFigures> devices = {};  ///< by rank; none if the run diverged
};

/// Reads `summary.json`. The time to the target is that of the first evaluation that reached it and
/// whose next evaluation confirmed it. Errors: DataError if a field is missing.
RunFigures figures_of(const nlohmann::ordered_json& summary, std::optional<double> target);

/// Reads the figures of a run in `comparison.json`, which has no staleness and no evaluations: the
/// time is that to the comparison's target. Empty if the run has no figures or damaged ones.
std::optional<RunFigures> kept_figures(const nlohmann::ordered_json& run);

/// The minimum and the maximum over the devices of a cluster.
struct MinMax {
  double least = 0;
  double most = 0;
};

/// The figures of a contestant over all seeds: medians over the runs that did not diverge.
struct ContestantFigures {
  std::string label;
  std::optional<double> learning_rate = {};
  std::optional<std::uint32_t> batch_size = {};  ///< where several were tried
  std::size_t runs = 0;
  std::size_t reached = 0;  ///< runs that reached the target
  std::size_t tested = 0;   ///< runs that have an accuracy
  std::optional<Spread> time_to_target = {};
  std::optional<double> speed_up = {};           ///< over ssgd
  std::optional<double> distance_to_limit = {};  ///< 1 is the upper bound
  std::optional<MeanAndDeviation> accuracy = {};
  std::optional<double> throughput = {};
  std::optional<double> cluster_efficiency = {};
  Totals totals = {};             ///< those of every run that did not diverge; empty without any
  Totals totals_per_sample = {};  ///< of the metrics that have a label per sample
  std::optional<double> median_staleness = {};
  std::optional<double> p99_staleness = {};
  std::optional<double> most_staleness = {};
  std::vector<DeviceFigures> devices = {};
};

ContestantFigures figures_over(const std::string& label, const std::vector<RunFigures>& runs);

/// Returns the range of a figure over all devices; empty without devices.
std::optional<MinMax> range_of(const std::vector<DeviceFigures>& devices,
                               double DeviceFigures::*figure);

/// Computes the speed-up over the contestant `ssgd` and the fraction of the upper bound (the
/// contestant `limit`), if these contestants exist and reached the target.
void relate(std::vector<ContestantFigures>& contestants);

/// The run that reached the target first; else the one with the highest accuracy; else that of the
/// lowest learning rate. Takes one run or more.
const RunFigures& best_of(const std::vector<RunFigures>& runs);

}  // namespace syncopate::cli
