#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"

namespace syncopate::cli {

/// What a benchmark found: an object a line of its table, the same figures in each, in order. The
/// names of figures say what they are: `bytes`, `…_seconds`, `…_per_second`, `…_bytes`.
using Results = std::vector<nlohmann::ordered_json>;

/// "14.5 ms", "1.23 µs".
std::string seconds_text(double seconds);

/// Adds `median_seconds`, `min_seconds` and `p90_seconds` of `seconds`, of which there is at least
/// one.
void add_times(nlohmann::ordered_json& result, std::vector<double> seconds);

/// The results as they are printed, without the last line end.
std::string report(const Results& results, Form form);

}  // namespace syncopate::cli
