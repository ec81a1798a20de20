#include "telemetry/metrics.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/whole.hpp"

namespace syncopate {
namespace {

double share_of_session(const MetricValues& values, double seconds) {
  return ratio(seconds, values[Metric::session_seconds]);
}

double job_throughput(const MetricValues& values) {
  return ratio(values[Metric::job_samples], values[Metric::job_seconds]);
}

double throughput(const MetricValues& values) {
  return share_of_session(values, values[Metric::samples]);
}

/// The throughput of the device by itself in steps of a whole batch. If the worker does not know
/// it, its samples / the seconds in which it computed.
double stand_alone_throughput(const MetricValues& values) {
  const double known = values[Metric::whole_batch_throughput];
  return known > 0 ? known : ratio(values[Metric::samples], busy_seconds(values));
}

double computing_time_ratio(const MetricValues& values) {
  return share_of_session(values, busy_seconds(values));
}

double communication_ratio(const MetricValues& values) {
  return share_of_session(values, values[Metric::communicate_seconds]);
}

double wait_ratio(const MetricValues& values) {
  return share_of_session(values, values[Metric::wait_seconds]);
}

/// Does not count snapshots for the evaluator, which are not part of training.
double traffic_bytes(const MetricValues& values) {
  return std::max(0.0, values[Metric::bytes_sent] - values[Metric::evaluation_bytes]);
}

double exchanged_bytes(const MetricValues& values) {
  return traffic_bytes(values) + values[Metric::local_bytes];
}

double busy_ratio(const MetricValues& values) {
  return share_of_session(values, values[Metric::busy_seconds]);
}

constexpr std::array table{
#define METRIC(name, ...) MetricSpec{__VA_ARGS__},
#include "telemetry/metrics.inc"
#undef METRIC
};

void write(nlohmann::ordered_json& object, std::string_view name, MetricUnit unit, double value) {
  if (unit == MetricUnit::count || unit == MetricUnit::bytes) {
    object[std::string(name)] = whole_of(value);
  } else {
    object[std::string(name)] = value;
  }
}

/// Writes the metrics that have a name in `object`. `value_of` maps a metric to its value.
template <class ValueOf>
void write_named(nlohmann::ordered_json& object, MetricTable metrics,
                 std::string_view MetricNames::*name, const ValueOf& value_of) {
  for (std::size_t index = 0; index < metrics.size(); ++index) {
    const MetricSpec& spec = metrics[index];
    if (!(spec.names.*name).empty()) {
      write(object, spec.names.*name, spec.unit, value_of(Metric{index}));
    }
  }
}

}  // namespace

MetricTable all_metrics() {
  return table;
}

std::vector<MetricSpec> labelled_metrics() {
  std::vector<MetricSpec> labelled;
  std::copy_if(table.begin(), table.end(), std::back_inserter(labelled),
               [](const MetricSpec& spec) { return !spec.label.empty(); });
  return labelled;
}

MetricValues::MetricValues(MetricTable table, std::span<const double> measured)
    : MetricValues(table) {
  const std::size_t known = std::min(measured.size(), measured_.size());
  std::copy_n(measured.begin(), known, measured_.begin());
}

double MetricValues::operator[](Metric metric) const {
  const auto index = static_cast<std::size_t>(metric);
  const auto derive = table_[index].derive;
  return derive != nullptr ? derive(*this) : measured_[index];
}

void MetricValues::set(Metric metric, double value) {
  measured_[static_cast<std::size_t>(metric)] = value;
}

void MetricValues::add(Metric metric, std::uint64_t value) {
  measured_[static_cast<std::size_t>(metric)] += static_cast<double>(value);
}

double job_value(Metric metric, std::span<const MetricValues> members, const MetricValues& keeper) {
  switch (keeper.table()[static_cast<std::size_t>(metric)].in_job) {
    case InJob::none: return 0;
    case InJob::keeper: return keeper[metric];
    case InJob::sum: break;
  }
  double sum = 0;
  for (const MetricValues& member : members) {
    sum += member[metric];
  }
  return sum;
}

void write_metrics(nlohmann::ordered_json& object, std::string_view MetricNames::*name,
                   const MetricValues& values) {
  write_named(object, values.table(), name, [&](Metric metric) { return values[metric]; });
}

void write_job_metrics(nlohmann::ordered_json& object, std::string_view MetricNames::*name,
                       std::span<const MetricValues> members, const MetricValues& keeper) {
  write_named(object, keeper.table(), name,
              [&](Metric metric) { return job_value(metric, members, keeper); });
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double busy_seconds(const MetricValues& worker) {
  return worker[Metric::data_seconds] + worker[Metric::compute_seconds];
}

}  // namespace syncopate
