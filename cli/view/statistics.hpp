#pragma once

#include <optional>
#include <vector>

namespace syncopate::cli {

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;  ///< of the sample: over n − 1; 0 of a single value
};

// Of no values there is nothing.

/// The mean of the two in the middle, where there are two.
std::optional<double> median_of(std::vector<double> values);
std::optional<MeanAndDeviation> mean_of(const std::vector<double>& values);

/// The spread of times of which some were not reached, which is later than any other.
/// Empty where the median is none of those reached; `most` is of those reached.
std::optional<Spread> spread_of(const std::vector<std::optional<double>>& times);

}  // namespace syncopate::cli
