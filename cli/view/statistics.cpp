#include "cli/view/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace syncopate::cli {

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) {
    return std::nullopt;
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<MeanAndDeviation> mean_of(const std::vector<double>& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return MeanAndDeviation{mean, values.size() < 2 ? 0 : std::sqrt(squares / (count - 1))};
}

std::optional<Spread> spread_of(const std::vector<std::optional<double>>& times) {
  std::vector<double> reached;
  std::vector<double> all;
  for (const auto& time : times) {
    all.push_back(time.value_or(std::numeric_limits<double>::infinity()));
    if (time) {
      reached.push_back(*time);
    }
  }
  const auto median = median_of(all);
  if (!median || !std::isfinite(*median)) {
    return std::nullopt;
  }
  const auto [least, most] = std::minmax_element(reached.begin(), reached.end());
  return Spread{*median, *least, *most};
}

}  // namespace syncopate::cli
