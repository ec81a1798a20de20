#pragma once

#include <cstddef>
#include <vector>

namespace syncopate::cli {

struct CurvePoint {
  double x = 0;
  double y = 0;
};
using Curve = std::vector<CurvePoint>;

/// The mean of each value and its neighbours: 2 · `reach` + 1 values. Near an end, both sides have
/// as many neighbours as the shorter side, so the first and the last value stay unchanged.
Curve smoothed(const Curve& curve, std::size_t reach);

/// Several curves as one: their mean, and one standard deviation of the sample around it.
struct BandPoint {
  double x = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// The band of curves with increasing x, at `points` equidistant places between the latest
/// beginning and the earliest end, with linear interpolation. A single curve keeps its own points
/// and has a band of width 0. Ignores curves without points.
std::vector<BandPoint> band_of(std::vector<Curve> curves, std::size_t points);

/// The value at `x`, which lies within the curve.
double value_at(const Curve& curve, double x);

}  // namespace syncopate::cli
