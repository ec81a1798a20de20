#pragma once

#include <optional>
#include <vector>

#include "cli/report/curves.hpp"
#include "cli/report/plot.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// What the x axis of an accuracy curve shows.
enum class Progress { training_time, samples };

/// The accuracies of a run over its progress; evaluations that are not finite do not count.
Curve accuracy_curve(const RunRecord& run, Progress progress);

/// A curve for each group with evaluations: smoothed, mean over its runs, with a band of a standard
/// deviation. Empty if no run was evaluated.
std::optional<Plot> accuracy_plot(const Setting& setting, Progress progress);

/// The time to the target of each scheme by the number of devices, with a band from the first seed
/// to the last. Empty if no contestant ran on fewer devices.
std::optional<Plot> devices_plot(const Setting& setting);

/// The speed-up over `ssgd` of each scheme on the clusters `ratio-R`. Empty for fewer than two such
/// clusters with a speed-up. One plot for each task.
std::vector<Plot> heterogeneity_plots(const std::vector<Setting>& settings);

}  // namespace syncopate::cli
