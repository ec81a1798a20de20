#include "cli/report/curves.hpp"

#include <algorithm>
#include <limits>

#include "cli/view/statistics.hpp"

namespace syncopate::cli {
namespace {

struct Range {
  double first = -std::numeric_limits<double>::infinity();
  double last = std::numeric_limits<double>::infinity();
};

Range common_range(const std::vector<Curve>& curves) {
  Range range;
  for (const Curve& curve : curves) {
    range.first = std::max(range.first, curve.front().x);
    range.last = std::min(range.last, curve.back().x);
  }
  return range;
}

BandPoint band_at(const std::vector<Curve>& curves, double x) {
  std::vector<double> values;
  std::transform(curves.begin(), curves.end(), std::back_inserter(values),
                 [x](const Curve& curve) { return value_at(curve, x); });
  const MeanAndDeviation mean = mean_of(values).value();
  return {x, mean.mean, mean.mean - mean.deviation, mean.mean + mean.deviation};
}

}  // namespace

Curve smoothed(const Curve& curve, std::size_t reach) {
  Curve result = curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const std::size_t here = std::min({reach, i, curve.size() - 1 - i});
    double sum = 0;
    for (std::size_t j = i - here; j <= i + here; ++j) {
      sum += curve[j].y;
    }
    result[i].y = sum / static_cast<double>(2 * here + 1);
  }
  return result;
}

double value_at(const Curve& curve, double x) {
  const auto after =
      std::lower_bound(curve.begin(), curve.end(), x,
                       [](const CurvePoint& point, double at) { return point.x < at; });
  if (after == curve.begin()) {
    return curve.front().y;
  }
  if (after == curve.end()) {
    return curve.back().y;
  }
  const auto before = after - 1;
  const double share = (x - before->x) / (after->x - before->x);
  return before->y + share * (after->y - before->y);
}

std::vector<BandPoint> band_of(std::vector<Curve> curves, std::size_t points) {
  std::erase_if(curves, [](const Curve& curve) { return curve.empty(); });
  std::vector<BandPoint> band;
  if (curves.size() == 1) {
    for (const CurvePoint& point : curves.front()) {
      band.push_back({point.x, point.y, point.y, point.y});
    }
    return band;
  }
  const Range range = common_range(curves);
  if (curves.empty() || range.first > range.last || points < 2) {
    return band;
  }
  for (std::size_t i = 0; i < points; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(points - 1);
    band.push_back(band_at(curves, range.first + share * (range.last - range.first)));
  }
  return band;
}

}  // namespace syncopate::cli
