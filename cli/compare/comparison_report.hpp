#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/figures.hpp"
#include "cli/view/statistics.hpp"
#include "cli/view/table.hpp"

namespace syncopate::cli {

// The tables and the JSON of a comparison. Pure; an unknown figure is "-", or null in JSON.

struct TitledTable {
  std::string title;
  Table table;
};

/// "12,345", or three digits of a small number.
std::string number_text(double value);

/// "5.25", and whole seconds from 1,000 on: "18,523". Without the unit.
std::string seconds_figure(double seconds);

/// "0.8612", with the deviation of several: "0.8612 ± 0.0020". "-" without an accuracy.
std::string accuracy_text(const ContestantFigures& one);

/// The name of a contestant in tables.
std::string shown_name(const ContestantFigures& one);

/// Three tables: the results of each contestant, its throughput and time shares, and the computing
/// time ratio of each device.
std::vector<TitledTable> tables_of(const std::vector<ContestantFigures>& contestants,
                                   std::optional<double> target);

/// The origin of a comparison's figures.
struct Provenance {
  std::string command;
  std::string machine;  ///< CPU and cores
  std::string date;
  std::string version;
  std::string worlds;  ///< the clocks of the runs: virtual or real
};

std::string markdown_of(const std::vector<TitledTable>& tables, const Provenance& provenance);

nlohmann::ordered_json to_json(const Spread& one);
nlohmann::ordered_json to_json(const ContestantFigures& figures);
nlohmann::ordered_json to_json(const RunFigures& figures);

}  // namespace syncopate::cli
