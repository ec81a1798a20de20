#pragma once

#include <vector>

#include "cli/report/plot.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// The bars of a setting, as far as its runs have the figures: throughput, time to the
/// target, accuracy, traffic, communication ratio, and the computing time ratio of each device.
std::vector<Plot> bar_plots(const Setting& setting);

}  // namespace syncopate::cli
