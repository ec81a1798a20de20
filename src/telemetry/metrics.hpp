#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace syncopate {

/// The metrics of `telemetry/metrics.inc`, where each is declared once. Heartbeats carry their
/// values; the status events, `summary.json`, the logs of workers, the live view and `compare`
/// write and read them by the same table.
enum class Metric : std::size_t {
#define METRIC(name, ...) name,
#include "telemetry/metrics.inc"
#undef METRIC
};

enum class MetricUnit {
  count,       ///< a whole number, as bytes are; all others are real numbers
  bytes,       ///< as above
  number,      ///< real, without a unit
  seconds,     ///< of the training clock
  ratio,       ///< of two values of one unit
  per_second,  ///< samples per second
};

/// How a job's value follows from those of its members.
enum class InJob {
  none,    ///< the job has no such value
  sum,     ///< over all workers and servers
  keeper,  ///< the value of the member that keeps the model: worker 0, or the first server
};

/// The names of a metric in JSON objects; empty if an object does not have the metric.
struct MetricNames {
  std::string_view status = {};         ///< in the event `status`, of the job
  std::string_view worker_status = {};  ///< in the event `status`, of a worker
  std::string_view summary = {};        ///< in `summary.json`, of the job
  std::string_view worker = {};         ///< in `summary.json`, of a worker
  std::string_view server = {};         ///< in `summary.json`, of a server
  std::string_view log = {};            ///< in a line of `workers/N.jsonl`
};

class MetricValues;

/// The declaration of a metric. Over time, a later value replaces an earlier one. A value covers
/// the whole session: the work of one process, without the work before a resume.
struct MetricSpec {
  MetricUnit unit = MetricUnit::count;
  InJob in_job = InJob::none;
  MetricNames names = {};
  /// The title of the job's value in the live view's summary and in the tables of `compare`; empty:
  /// in neither.
  std::string_view label = {};
  /// The title of that value per sample in the tables of `compare`; empty: in none.
  std::string_view per_sample_label = {};
  /// Computes the value from those of other metrics; null: the value is measured, and set by the
  /// member.
  double (*derive)(const MetricValues& values) = nullptr;
};

/// All metrics. A metric's index in the table is its number. Tests use tables with more rows.
using MetricTable = std::span<const MetricSpec>;
MetricTable all_metrics();
/// The rows with a label.
std::vector<MetricSpec> labelled_metrics();

/// The values of one member.
class MetricValues {
 public:
  explicit MetricValues(MetricTable table = all_metrics())
      : table_(table), measured_(table.size()) {}
  /// Takes measured values from a message: missing ones are 0, surplus ones are ignored.
  MetricValues(MetricTable table, std::span<const double> measured);

  /// The value, measured or derived.
  double operator[](Metric metric) const;
  /// Only for metrics that are measured.
  void set(Metric metric, double value);
  void set(Metric metric, std::uint64_t value) { set(metric, static_cast<double>(value)); }
  void add(Metric metric, std::uint64_t value = 1);

  MetricTable table() const { return table_; }
  /// The values for a message: one per row, 0 for derived metrics.
  std::span<const double> measured() const { return measured_; }

 private:
  MetricTable table_;
  std::vector<double> measured_;
};

/// The job's value of a metric. `members`: all workers and servers.
double job_value(Metric metric, std::span<const MetricValues> members, const MetricValues& keeper);

/// Appends to `object` the metrics that have a name there.
void write_metrics(nlohmann::ordered_json& object, std::string_view MetricNames::*name,
                   const MetricValues& values);
/// Appends to `object` the job's values of the metrics that have a name there.
void write_job_metrics(nlohmann::ordered_json& object, std::string_view MetricNames::*name,
                       std::span<const MetricValues> members, const MetricValues& keeper);

/// Returns part / whole; 0 if `whole` is 0.
double ratio(double part, double whole);
/// The seconds in which a device computed: data, forward, backward, local update, paced time.
double busy_seconds(const MetricValues& worker);

}  // namespace syncopate
