#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/comparison_report.hpp"
#include "cli/compare/figures.hpp"
#include "cli/compare/plan.hpp"
#include "cli/view/statistics.hpp"
#include "device/cluster_file.hpp"

namespace syncopate::cli {

/// Seconds to the target by label, then in the order of seeds; empty: not reached.
using TimesToTarget = std::map<std::string, std::vector<std::optional<double>>>;

std::vector<std::optional<double>> times_of(const std::vector<RunFigures>& runs);

/// What a device gives a scheme that has all faster ones already: the time to the target without it
/// over that with it, by seed. Above 1 the device helps.
struct DeviceBenefit {
  std::string label;             ///< of the contestant
  std::size_t devices = 1;       ///< the fastest ones, this one included
  std::string device;            ///< its name
  std::optional<Spread> time;    ///< empty: most seeds did not reach the target
  std::optional<double> median;  ///< empty for the first device, and where no seed decides
  std::optional<double> worst;   ///< of the seeds; 0 where one reached the target only without it
};

/// The benefit of each device to each contestant of `plan` that also runs on fewer devices. Pure.
std::vector<DeviceBenefit> benefits_of(const ComparisonPlan& plan, const ClusterFile& cluster,
                                       const TimesToTarget& times);

TitledTable benefit_table(const std::vector<DeviceBenefit>& benefits);
nlohmann::ordered_json to_json(const std::vector<DeviceBenefit>& benefits);

}  // namespace syncopate::cli
