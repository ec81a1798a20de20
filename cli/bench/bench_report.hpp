#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/bench_command.hpp"

namespace syncopate::cli {

/// The results of a benchmark: one object for each line of its table, with the same figures in the
/// same order. The names of figures give their units: `bytes`, `…_seconds`, `…_per_second`,
/// `…_bytes`.
using Results = std::vector<nlohmann::ordered_json>;

/// "14.5 ms", "1.23 µs".
std::string seconds_text(double seconds);

/// Adds `median_seconds`, `min_seconds` and `p90_seconds` of `seconds`, which is not empty.
void add_times(nlohmann::ordered_json& result, std::vector<double> seconds);

/// The printed results, without the last line end.
std::string report(const Results& results, Form form);

}  // namespace syncopate::cli
