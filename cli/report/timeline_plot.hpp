#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/plot.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// What a worker does in a piece of a time line.
enum class Activity { data, compute, wait, communicate };

/// Seconds from the beginning of the window.
struct TimeSlice {
  std::size_t worker = 0;
  Activity activity = Activity::compute;
  double begin = 0;
  double end = 0;
};

/// A part of a run: one round, or one step of the slowest worker where there are no rounds.
struct TimeLine {
  double seconds = 0;  ///< its length
  std::vector<TimeSlice> slices = {};
};

/// The round in the middle of the run. It is the one of the worker whose rounds take longest; of
/// the other workers it shows what they do meanwhile. A log has the sums of a round only, so the
/// activities stand in the order of a step: data, compute, wait, communicate. Where they overlap,
/// all are shortened to fit. Empty where a worker has no round.
std::optional<TimeLine> middle_round(const std::vector<std::vector<RoundTimes>>& workers);

/// A panel for each group whose runs have logs of workers, of the first such run. Empty without
/// one.
std::optional<Plot> timeline_plot(const Setting& setting);

}  // namespace syncopate::cli
