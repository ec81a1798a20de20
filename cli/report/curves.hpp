#pragma once

#include <cstddef>
#include <vector>

namespace syncopate::cli {

struct CurvePoint {
  double x = 0;
  double y = 0;
};
using Curve = std::vector<CurvePoint>;

/// The mean of each value and its neighbours: 2 · `reach` + 1 values, and near an end as many on
/// each side as there are on the shorter one, so that the first and the last value stay.
Curve smoothed(const Curve& curve, std::size_t reach);

/// Several curves as one: their mean, and one standard deviation of the sample around it.
struct BandPoint {
  double x = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// The band of curves with increasing x, at `points` places of equal distance between the latest
/// beginning and the earliest end, by straight lines between the points of a curve. A single curve
/// keeps its own points and has a band without width. Curves without points do not count.
std::vector<BandPoint> band_of(std::vector<Curve> curves, std::size_t points);

/// The value at `x`, which lies within the curve.
double value_at(const Curve& curve, double x);

}  // namespace syncopate::cli
