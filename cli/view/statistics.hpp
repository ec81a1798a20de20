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
  double deviation = 0;  ///< of the sample (n − 1); 0 for a single value
};

// The results are empty if `values` is empty.

/// For an even count, the mean of the two middle values.
std::optional<double> median_of(std::vector<double> values);
std::optional<MeanAndDeviation> mean_of(const std::vector<double>& values);

/// The spread of times, of which some may be missing because the target was not reached; these
/// count as later than all others. Empty if the median is missing. `most` is the largest existing
/// time.
std::optional<Spread> spread_of(const std::vector<std::optional<double>>& times);

}  // namespace syncopate::cli
