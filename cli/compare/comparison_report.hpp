#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/figures.hpp"
#include "cli/view/table.hpp"

namespace syncopate::cli {

// How a comparison is shown. Pure; a figure that is not known is "-", or null in JSON.

struct TitledTable {
  std::string title;
  Table table;
};

/// What became of each contestant, where its time went, and the share of time in which each device
/// computed.
std::vector<TitledTable> tables_of(const std::vector<ContestantFigures>& contestants,
                                   std::optional<double> target);

/// Under which circumstances a comparison was made.
struct Provenance {
  std::string command;
  std::string machine;  ///< CPU and cores
  std::string date;
  std::string version;
  std::string worlds;  ///< in which the runs were tried and counted
};

std::string markdown_of(const std::vector<TitledTable>& tables, const Provenance& provenance);

nlohmann::ordered_json to_json(const ContestantFigures& figures);
nlohmann::ordered_json to_json(const RunFigures& figures);

}  // namespace syncopate::cli
