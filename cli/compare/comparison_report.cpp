#include "cli/compare/comparison_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/whole.hpp"
#include "cli/view/render.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

std::string shown(std::optional<double> value, std::string (*show)(double)) {
  return value ? show(*value) : "-";
}

std::string times_text(double factor) {
  return fmt::format("{:.3g}", factor);
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string rate_text(double value) {
  return fmt::format("{:.4g}", value);
}

std::string grouped_whole(double value) {
  return grouped(whole_of(std::round(value)));
}

std::string time_text(const std::optional<Spread>& time) {
  if (!time) {
    return "-";
  }
  const std::string median = seconds_figure(time->median) + " s";
  return time->least == time->most
             ? median
             : fmt::format("{} ({} to {})", median, seconds_figure(time->least),
                           seconds_figure(time->most));
}

std::string range_text(const ContestantFigures& one, double DeviceFigures::*figure) {
  const auto range = range_of(one.devices, figure);
  if (!range) {
    return "-";
  }
  const std::string least = fmt::format("{:.1f}", 100 * range->least);
  const std::string most = fmt::format("{:.1f}", 100 * range->most);
  return least == most ? most + " %" : fmt::format("{} to {} %", least, most);
}

std::string staleness_text(const ContestantFigures& one) {
  return one.median_staleness
             ? fmt::format("{:g} / {:g} / {:g}", *one.median_staleness,
                           one.p99_staleness.value_or(0), one.most_staleness.value_or(0))
             : "-";
}

Table results(const std::vector<ContestantFigures>& contestants, std::optional<double> target) {
  const bool sizes = std::ranges::any_of(
      contestants, [](const ContestantFigures& one) { return one.batch_size.has_value(); });
  std::vector<Table::Column> columns{{"scheme", Align::left}};
  if (sizes) {
    columns.push_back({"batch"});
  }
  columns.insert(columns.end(), {{"rate"},
                                 {target ? fmt::format("time to {}", *target) : "time to target"},
                                 {"reached"},
                                 {"speed-up"},
                                 {"of upper bound"},
                                 {"accuracy"}});
  Table table(columns);
  for (const ContestantFigures& one : contestants) {
    std::vector<std::string> cells{shown_name(one)};
    if (sizes) {
      cells.push_back(one.batch_size ? std::to_string(*one.batch_size) : "-");
    }
    cells.insert(cells.end(), {shown(one.learning_rate, rate_text), time_text(one.time_to_target),
                               target ? fmt::format("{} of {}", one.reached, one.runs) : "-",
                               shown(one.speed_up, times_text),
                               shown(one.distance_to_limit, times_text), accuracy_text(one)});
    table.add(cells);
  }
  return table;
}

std::optional<double> value_in(const Totals& totals, std::string_view name) {
  const auto found = totals.find(std::string(name));
  return found == totals.end() ? std::nullopt : std::optional(found->second);
}

/// The cells of the metrics that have a label.
std::vector<std::string> totals_of(const ContestantFigures& one) {
  std::vector<std::string> cells;
  for (const MetricSpec& metric : labelled_metrics()) {
    const auto text = text_for(metric.unit);
    cells.push_back(shown(value_in(one.totals, metric.names.summary), text));
    if (!metric.per_sample_label.empty()) {
      cells.push_back(shown(value_in(one.totals_per_sample, metric.names.summary), text));
    }
  }
  return cells;
}

std::vector<Table::Column> cost_columns() {
  std::vector<Table::Column> columns{{"scheme", Align::left}, {"samples/s"},     {"efficiency"},
                                     {"computing"},           {"communication"}, {"wait"}};
  for (const MetricSpec& metric : labelled_metrics()) {
    columns.push_back({std::string(metric.label)});
    if (!metric.per_sample_label.empty()) {
      columns.push_back({std::string(metric.per_sample_label)});
    }
  }
  columns.push_back({"staleness"});
  return columns;
}

Table costs(const std::vector<ContestantFigures>& contestants) {
  Table table(cost_columns());
  for (const ContestantFigures& one : contestants) {
    std::vector<std::string> cells{shown_name(one),
                                   shown(one.throughput, number_text),
                                   shown(one.cluster_efficiency, percent_text),
                                   range_text(one, &DeviceFigures::computing),
                                   range_text(one, &DeviceFigures::communication),
                                   range_text(one, &DeviceFigures::wait)};
    std::ranges::copy(totals_of(one), std::back_inserter(cells));
    cells.push_back(staleness_text(one));
    table.add(cells);
  }
  return table;
}

/// The devices of the cluster. The upper bound has another, imaginary device.
const std::vector<DeviceFigures>& devices_of(const std::vector<ContestantFigures>& contestants) {
  return std::max_element(contestants.begin(), contestants.end(),
                          [](const auto& one, const auto& other) {
                            return one.devices.size() < other.devices.size();
                          })
      ->devices;
}

Table computing_by_device(const std::vector<ContestantFigures>& contestants) {
  const std::vector<DeviceFigures>& devices = devices_of(contestants);
  std::vector<Table::Column> columns{{"device", Align::left}};
  for (const ContestantFigures& one : contestants) {
    columns.push_back({shown_name(one)});
  }
  Table table(columns);
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    std::vector<std::string> row{fmt::format("{} {}", rank, devices[rank].name)};
    for (const ContestantFigures& one : contestants) {
      row.push_back(one.devices.size() == devices.size() ? percent_text(one.devices[rank].computing)
                                                         : "-");
    }
    table.add(row);
  }
  return table;
}

template <class Number>
Json or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json devices_json(const std::vector<DeviceFigures>& devices) {
  Json list = Json::array();
  for (const DeviceFigures& device : devices) {
    list.push_back({{"device", device.name},
                    {"throughput", device.throughput},
                    {"computing_time_ratio", device.computing},
                    {"communication_ratio", device.communication},
                    {"wait_ratio", device.wait}});
  }
  return list;
}

}  // namespace

std::string number_text(double value) {
  constexpr double rounds_to_four_digits = 999.5;
  return value < rounds_to_four_digits ? fmt::format("{:.3g}", value) : grouped_whole(value);
}

std::string seconds_figure(double seconds) {
  constexpr double rounds_to_thousand = 999.95;  // of four digits
  return seconds < rounds_to_thousand ? fmt::format("{:.4g}", seconds) : grouped_whole(seconds);
}

std::string accuracy_text(const ContestantFigures& one) {
  if (!one.accuracy) {
    return "-";
  }
  const std::string mean = fmt::format("{:.4f}", one.accuracy->mean);
  return one.tested > 1 ? fmt::format("{} ± {:.4f}", mean, one.accuracy->deviation) : mean;
}

std::string shown_name(const ContestantFigures& one) {
  return one.label == "limit" ? "upper bound" : one.label;
}

std::vector<TitledTable> tables_of(const std::vector<ContestantFigures>& contestants,
                                   std::optional<double> target) {
  return {
      {"Results", results(contestants, target).without_empty_columns()},
      {"Throughput and cost (staleness: median / p99 / max)",
       costs(contestants).without_empty_columns()},
      {"Computing time ratio by device", computing_by_device(contestants).without_empty_columns()}};
}

std::string markdown_of(const std::vector<TitledTable>& tables, const Provenance& provenance) {
  std::string text =
      fmt::format("# Comparison\n\n    {}\n\n{}; {}; {}. {}.\n", provenance.command,
                  provenance.version, provenance.machine, provenance.date, provenance.worlds);
  for (const TitledTable& one : tables) {
    text += fmt::format("\n## {}\n\n{}\n", one.title, fmt::join(one.table.markdown(), "\n"));
  }
  return text;
}

Json to_json(const Spread& one) {
  return {{"median", one.median}, {"least", one.least}, {"most", one.most}};
}

Json to_json(const ContestantFigures& one) {
  const auto& time = one.time_to_target;
  const auto& accuracy = one.accuracy;
  Json object{
      {"label", one.label},
      {"learning_rate", or_null(one.learning_rate)},
      {"batch_size", or_null(one.batch_size)},
      {"runs", one.runs},
      {"reached", one.reached},
      {"time_to_target_seconds", time ? to_json(*time) : Json(nullptr)},
      {"speed_up", or_null(one.speed_up)},
      {"distance_to_limit", or_null(one.distance_to_limit)},
      {"accuracy", accuracy ? Json{{"mean", accuracy->mean}, {"deviation", accuracy->deviation}}
                            : Json(nullptr)},
      {"throughput", or_null(one.throughput)},
      {"cluster_efficiency", or_null(one.cluster_efficiency)},
      {"staleness",
       {{"median", or_null(one.median_staleness)},
        {"p99", or_null(one.p99_staleness)},
        {"max", or_null(one.most_staleness)}}},
      {"devices", devices_json(one.devices)}};
  for (const MetricSpec& metric : labelled_metrics()) {
    const std::string name(metric.names.summary);
    object[name] = or_null(value_in(one.totals, name));
    if (!metric.per_sample_label.empty()) {
      object[name + "_per_sample"] = or_null(value_in(one.totals_per_sample, name));
    }
  }
  return object;
}

Json to_json(const RunFigures& run) {
  Json object{{"learning_rate", or_null(run.learning_rate)},
              {"batch_size", or_null(run.batch_size)},
              {"time_to_target_seconds", or_null(run.time_to_target)},
              {"accuracy", or_null(run.accuracy)},
              {"training_seconds", run.training_seconds},
              {"samples", run.samples},
              {"throughput", run.throughput},
              {"cluster_efficiency", run.cluster_efficiency},
              {"devices", devices_json(run.devices)}};
  for (const MetricSpec& metric : labelled_metrics()) {
    const std::string name(metric.names.summary);
    object[name] = or_null(value_in(run.totals, name));
  }
  return object;
}

}  // namespace syncopate::cli
