#include "cli/compare/device_benefit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;
using Times = std::vector<std::optional<double>>;

constexpr double not_reached = std::numeric_limits<double>::infinity();

/// A seed that did not reach the target counts as later than all others.
std::optional<double> finite_median_of(std::vector<double> values) {
  const auto median = median_of(std::move(values));
  return median && std::isfinite(*median) ? median : std::nullopt;
}

std::vector<double> seconds_of(const Times& times) {
  std::vector<double> seconds;
  for (const auto& time : times) {
    seconds.push_back(time.value_or(not_reached));
  }
  return seconds;
}

/// By seed; a seed that reached the target neither way decides nothing.
std::vector<double> ratios_of(const Times& without, const Times& with) {
  const std::vector<double> before = seconds_of(without);
  const std::vector<double> after = seconds_of(with);
  std::vector<double> ratios;
  for (std::size_t seed = 0; seed < std::min(before.size(), after.size()); ++seed) {
    if (before[seed] != not_reached || after[seed] != not_reached) {
      ratios.push_back(before[seed] / after[seed]);
    }
  }
  return ratios;
}

void compare(DeviceBenefit& benefit, const Times& without, const Times& with) {
  const std::vector<double> ratios = ratios_of(without, with);
  benefit.median = finite_median_of(ratios);
  benefit.worst = finite_median_of({ratios.empty() ? not_reached : std::ranges::min(ratios)});
}

/// The times of a contestant on its first devices, by their number; `all` of them are those of the
/// contestant itself.
std::vector<const Times*> times_by_count(const ComparisonPlan& plan, const Contestant& whole,
                                         std::size_t all, const TimesToTarget& times) {
  std::vector<const Times*> by_count(all + 1, nullptr);
  for (const Contestant& one : plan.contestants) {
    if (one.prefix_of == whole.label) {
      by_count[one.fastest] = &times.at(one.label);
    }
  }
  by_count[all] = &times.at(whole.label);
  return by_count;
}

std::string ratio_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

Json null_or(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Times times_of(const std::vector<RunFigures>& runs) {
  Times times;
  std::ranges::transform(runs, std::back_inserter(times), &RunFigures::time_to_target);
  return times;
}

std::vector<DeviceBenefit> benefits_of(const ComparisonPlan& plan, const ClusterFile& cluster,
                                       const TimesToTarget& times) {
  const std::size_t all = cluster.devices.size();
  const std::vector<std::size_t> order = by_speed(cluster, all);
  std::vector<DeviceBenefit> benefits;
  for (const Contestant& whole : plan.contestants) {
    if (whole.is_limit || whole.fastest > 0) {
      continue;  // it does not run on fewer devices
    }
    const std::vector<const Times*> by_count = times_by_count(plan, whole, all, times);
    for (std::size_t count = 1; count <= all; ++count) {
      DeviceBenefit benefit{.label = whole.label,
                            .devices = count,
                            .device = cluster.devices[order[count - 1]].name,
                            .time = spread_of(*by_count[count]),
                            .median = {},
                            .worst = {}};
      if (count > 1) {
        compare(benefit, *by_count[count - 1], *by_count[count]);
      }
      benefits.push_back(std::move(benefit));
    }
  }
  return benefits;
}

TitledTable benefit_table(const std::vector<DeviceBenefit>& benefits) {
  Table table({{"scheme", Table::Align::left},
               {"devices"},
               {"with", Table::Align::left},
               {"seconds to target"},
               {"benefit"},
               {"worst seed"}});
  for (const DeviceBenefit& one : benefits) {
    table.add({one.label, std::to_string(one.devices), one.device,
               one.time ? seconds_figure(one.time->median) : "-", ratio_cell(one.median),
               ratio_cell(one.worst)});
  }
  return {"Benefit of each device (time without it over time with it, medians)", table};
}

Json to_json(const std::vector<DeviceBenefit>& benefits) {
  Json list = Json::array();
  for (const DeviceBenefit& one : benefits) {
    list.push_back({{"label", one.label},
                    {"devices", one.devices},
                    {"device", one.device},
                    {"time_to_target_seconds", one.time ? to_json(*one.time) : Json(nullptr)},
                    {"benefit", null_or(one.median)},
                    {"worst_benefit", null_or(one.worst)}});
  }
  return list;
}

}  // namespace syncopate::cli
