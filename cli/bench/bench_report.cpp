#include "cli/bench/bench_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cli/view/render.hpp"
#include "cli/view/statistics.hpp"
#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the nearest-rank quantile: the smallest value that is greater than or equal to the share
/// `part` of the values. `sorted` is in ascending order.
double quantile(const std::vector<double>& sorted, double part) {
  const auto rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

/// The title of a figure's column: its name without the unit, which the cells contain.
std::string head_of(std::string name) {
  if (name == "bytes_per_second") {
    return "bandwidth";
  }
  for (const std::string_view unit : {"_seconds", "_bytes", "_per_second"}) {
    if (name.ends_with(unit)) {
      name.erase(name.size() - unit.size());
      name += unit == "_per_second" ? "/s" : "";
    }
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string cell_of(const std::string& name, const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  const auto number = value.get<double>();
  if (name == "bytes_per_second") {
    return fmt::format("{:.2f} GB/s", 1e-9 * number);
  }
  if (name.ends_with("_seconds")) {
    return seconds_text(number);
  }
  if (name == "bytes" || name.ends_with("_bytes")) {
    return bytes_text(number);
  }
  return value.is_number_float() ? fmt::format("{:.4g}", number) : value.dump();
}

Table table_of(const Results& results) {
  std::vector<Table::Column> columns;
  for (const auto& [name, value] : results.front().items()) {
    columns.push_back(
        {head_of(name), value.is_string() ? Table::Align::left : Table::Align::right});
  }
  Table table(std::move(columns));
  for (const Json& result : results) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : result.items()) {
      cells.push_back(cell_of(name, value));
    }
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

std::string seconds_text(double seconds) {
  constexpr std::array<std::pair<double, std::string_view>, 4> units{
      {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}};
  const auto* unit = units.begin();
  while (unit + 1 != units.end() && seconds >= 999.5 * unit->first) {
    ++unit;
  }
  const double number = seconds / unit->first;
  const int digits = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", number, digits, unit->second);
}

void add_times(Json& result, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  result["median_seconds"] = median_of(seconds).value();
  result["min_seconds"] = seconds.front();
  result["p90_seconds"] = quantile(seconds, 0.9);
}

std::string report(const Results& results, Form form) {
  if (form == Form::json) {
    return Json{{"results", results}}.dump();
  }
  const Table table = table_of(results);
  return fmt::format("{}",
                     fmt::join(form == Form::markdown ? table.markdown() : table.lines(), "\n"));
}

}  // namespace syncopate::cli
