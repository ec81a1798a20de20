#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/plot.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// A worker's activity in a piece of a time line.
enum class Activity { data, compute, wait, communicate };

/// Seconds from the beginning of the window.
struct TimeSlice {
  std::size_t worker = 0;
  Activity activity = Activity::compute;
  double begin = 0;
  double end = 0;
};

/// A part of a run: one round, or one step of the slowest worker in a run without rounds.
struct TimeLine {
  double seconds = 0;  ///< its length
  std::vector<TimeSlice> slices = {};
};

/// The round in the middle of the run, of the worker whose rounds take longest, and the activities
/// of the other workers during it. A log has only the sums of a round, so the activities stand in
/// the order of a step: data, compute, wait, communicate. If they overlap, all are shortened to
/// fit. Empty if a worker has no round.
std::optional<TimeLine> middle_round(const std::vector<std::vector<RoundTimes>>& workers);

/// A panel for each group whose runs have logs of workers, of the first such run. Empty without
/// one.
std::optional<Plot> timeline_plot(const Setting& setting);

}  // namespace syncopate::cli
