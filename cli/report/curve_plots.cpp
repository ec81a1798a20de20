#include "cli/report/curve_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cli/compare/comparison_report.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t band_points = 80;
constexpr std::size_t smoothing_reach = 1;
constexpr std::size_t marks = 8;  ///< on a curve, to distinguish it in greyscale print
/// The axis of time is logarithmic if longest / shortest curve is at least this ratio.
constexpr double far_apart = 10;

/// One curve of a plot, with its legend.
struct Line {
  std::string title;
  Look look;
  std::vector<BandPoint> points;
};

std::vector<std::string> rows_of(const std::vector<BandPoint>& band) {
  std::vector<std::string> rows;
  for (const BandPoint& point : band) {
    rows.push_back(
        fmt::format("{:.6g} {:.6g} {:.6g} {:.6g}", point.x, point.mean, point.low, point.high));
  }
  return rows;
}

bool has_width(const std::vector<BandPoint>& band) {
  return std::any_of(band.begin(), band.end(),
                     [](const BandPoint& point) { return point.high > point.low; });
}

/// Draws the bands first, so that no band covers a curve. Markers of different curves stand at
/// different places.
std::string plot_command(const std::vector<Line>& lines) {
  std::string command = "plot ";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (has_width(lines[i].points)) {
      command += fmt::format(
          "$line{} using 1:3:4 with filledcurves fillcolor rgb '{}' fillstyle transparent solid "
          "0.18 noborder notitle, \\\n  ",
          i, lines[i].look.colour);
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const std::size_t every = std::max<std::size_t>(1, line.points.size() / marks);
    command += fmt::format(
        "$line{} using 1:2 with linespoints linecolor rgb '{}' linewidth 2 dashtype {} pointtype "
        "{} pointsize 0.7 pointinterval {} title {}{}",
        i, line.look.colour, line.look.dash, line.look.marker, every, gnuplot_string(line.title),
        i + 1 < lines.size() ? ", \\\n  " : "\n");
  }
  return command;
}

void add_lines(Plot& plot, const std::vector<Line>& lines) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    plot.data += data_block(fmt::format("line{}", i), rows_of(lines[i].points));
    titles.push_back(lines[i].title);
  }
  add_legend(plot, titles);
  plot.drawing += plot_command(lines);
}

std::string seeds_text(std::size_t runs) {
  return runs > 1 ? fmt::format(" ({} seeds)", runs) : "";
}

std::vector<Line> accuracy_lines(const Setting& setting, Progress progress) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < setting.groups.size(); ++i) {
    const RunGroup& group = setting.groups[i];
    std::vector<Curve> curves;
    for (const RunRecord& run : group.runs) {
      const Curve curve = accuracy_curve(run, progress);
      if (!curve.empty()) {
        curves.push_back(smoothed(curve, smoothing_reach));
      }
    }
    const std::size_t runs = curves.size();
    const auto band = band_of(std::move(curves), band_points);
    if (!band.empty()) {
      lines.push_back({shown_name(group.figures) + seeds_text(runs), group.look, band});
    }
  }
  return lines;
}

/// The speed-ups of one task by label, over the factors.
struct SpeedUps {
  const Setting* task = nullptr;
  std::vector<std::string> labels = {};
  std::map<std::string, std::vector<BandPoint>> by_label = {};
  std::map<std::string, Look> looks = {};
  std::vector<double> factors = {};
};

void add_speed_ups(SpeedUps& found, const Setting& setting, double factor) {
  for (const RunGroup& group : setting.groups) {
    if (!group.figures.speed_up) {
      continue;
    }
    const std::string label = shown_name(group.figures);
    if (!found.by_label.contains(label)) {
      found.labels.push_back(label);
    }
    found.looks[label] = group.look;
    const double value = *group.figures.speed_up;
    found.by_label[label].push_back({factor, value, value, value});
    if (std::find(found.factors.begin(), found.factors.end(), factor) == found.factors.end()) {
      found.factors.push_back(factor);
    }
  }
}

/// The range of times as gnuplot's commands. If one scheme takes many times as long as another,
/// a linear axis would press the shorter curves against its left edge; a logarithmic axis cannot
/// show points at time 0.
std::string time_range(std::vector<Line>& lines) {
  double first = HUGE_VAL;
  double shortest = HUGE_VAL;
  double longest = 0;
  for (const Line& line : lines) {
    shortest = std::min(shortest, line.points.back().x);
    longest = std::max(longest, line.points.back().x);
  }
  if (!(shortest > 0 && longest >= far_apart * shortest)) {
    return "set xrange [0:*]";
  }
  for (Line& line : lines) {
    std::erase_if(line.points, [](const BandPoint& point) { return point.x <= 0; });
    first = std::min(first, line.points.front().x);
  }
  return fmt::format("set logscale x 10\nset xrange [{:.6g}:{:.6g}]", 0.8 * first, 1.25 * longest);
}

/// The range of accuracies as gnuplot's command: from the lowest to the highest point of bands and
/// target, on steps of a tenth of the range or less.
std::string accuracy_range(const std::vector<Line>& lines, std::optional<double> target) {
  constexpr double narrowest = 0.01;
  double low = target.value_or(1);
  double high = target.value_or(0);
  for (const Line& line : lines) {
    for (const BandPoint& point : line.points) {
      low = std::min(low, point.low);
      high = std::max(high, point.high);
    }
  }
  const double range = std::max(high - low, narrowest);
  const double step = std::pow(10, std::floor(std::log10(range))) / 2;
  // Even if all accuracies are 1: gnuplot refuses a range from 1 to 1.
  const double from = std::max(0.0, std::min(step * std::floor(low / step), 1 - narrowest));
  return fmt::format("set yrange [{:.6g}:{:.6g}]", from,
                     std::min(1.0, std::max(step * std::ceil(high / step), from + narrowest)));
}

Plot speed_up_plot(SpeedUps found, std::size_t index) {
  Plot plot{.name = numbered("speedup-heterogeneity", index),
            .caption = fmt::format(
                "Speed-up over ssgd in time to the target accuracy, by the factor by which the "
                "slow device is slower than the others: {} on {}.",
                found.task->network, found.task->data)};
  std::vector<Line> lines;
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    auto& points = found.by_label[found.labels[i]];
    std::sort(points.begin(), points.end(),
              [](const BandPoint& one, const BandPoint& other) { return one.x < other.x; });
    lines.push_back({found.labels[i], found.looks[found.labels[i]], points});
  }
  std::sort(found.factors.begin(), found.factors.end());
  std::string tics;
  for (const double factor : found.factors) {
    tics += fmt::format("{}{:g}", tics.empty() ? "" : ", ", factor);
  }
  plot.drawing = fmt::format(
      "set xlabel 'slowdown of the slow device (times)' offset 0,0.7\nset ylabel 'speed-up over "
      "ssgd (times)'\n"
      "set logscale x 2\nset xrange [{:g}:{:g}]\nset xtics ({})\nset yrange [0:*]\n",
      found.factors.front() / 1.3, found.factors.back() * 1.3, tics);
  add_lines(plot, lines);
  return plot;
}

}  // namespace

Curve accuracy_curve(const RunRecord& run, Progress progress) {
  Curve curve;
  for (const EvaluationResult& one : run.evaluations) {
    const double x = progress == Progress::training_time ? one.training_seconds
                                                         : static_cast<double>(one.samples);
    const bool follows = curve.empty() || x > curve.back().x;
    if (std::isfinite(one.accuracy) && std::isfinite(x) && follows) {
      curve.push_back({x, one.accuracy});
    }
  }
  return curve;
}

std::optional<Plot> accuracy_plot(const Setting& setting, Progress progress) {
  const std::vector<Line> lines = accuracy_lines(setting, progress);
  if (lines.empty()) {
    return std::nullopt;
  }
  const bool by_time = progress == Progress::training_time;
  Plot plot{.name = by_time ? "accuracy-time" : "accuracy-samples",
            .caption = fmt::format(
                "Test accuracy against {}: mean of three neighbouring evaluations; over seeds, "
                "their mean with a band of one standard deviation.",
                by_time ? "training time" : "samples trained on")};
  std::vector<Line> scaled = lines;
  plot.drawing = fmt::format("set xlabel '{}' offset 0,0.7\nset ylabel 'test accuracy'\n{}\n{}\n",
                             by_time ? "training time (s)" : "samples (thousands)",
                             by_time ? time_range(scaled) : "set xrange [0:*]",
                             accuracy_range(lines, setting.target));
  for (Line& line : scaled) {
    for (BandPoint& point : line.points) {
      point.x /= by_time ? 1 : 1000;
    }
  }
  if (setting.target) {
    plot.drawing += fmt::format(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead linecolor rgb '#888888' "
        "dashtype 3\n",
        *setting.target);
  }
  add_lines(plot, scaled);
  return plot;
}

std::optional<Plot> devices_plot(const Setting& setting) {
  std::vector<Line> lines;
  double most_devices = 0;
  double shortest = std::numeric_limits<double>::infinity();
  double longest = 0;
  for (const RunGroup& group : setting.groups) {
    std::vector<BandPoint> points;
    for (const TimeOnDevices& one : group.runs.front().on_fewer_devices) {
      points.push_back({one.devices, one.median, one.least, one.most});
      most_devices = std::max(most_devices, one.devices);
      shortest = std::min(shortest, one.least);
      longest = std::max(longest, one.most);
    }
    if (!points.empty()) {
      lines.push_back({group.figures.label, group.look, points});
    }
  }
  if (lines.empty()) {
    return std::nullopt;
  }
  Plot plot{.name = "time-devices",
            .caption =
                "Training time to the target accuracy by the number of devices, the fastest "
                "first: median over seeds, with a band from the least to the most."};
  plot.drawing = fmt::format(
      "set xlabel 'devices, the fastest first' offset 0,0.7\nset ylabel 'time to accuracy (s)'\n"
      "set xrange [1:{:g}]\nset xtics 1\nset logscale y\nset yrange [{:g}:{:g}]\n",
      most_devices, shortest / 1.3, longest * 1.3);
  add_lines(plot, lines);
  return plot;
}

std::vector<Plot> heterogeneity_plots(const std::vector<Setting>& settings) {
  std::vector<SpeedUps> tasks;
  for (const Setting& setting : settings) {
    if (const auto factor = heterogeneity_of(setting)) {
      auto task = std::find_if(tasks.begin(), tasks.end(),
                               [&](const SpeedUps& one) { return same_task(*one.task, setting); });
      if (task == tasks.end()) {
        task = tasks.insert(tasks.end(), {.task = &setting});
      }
      add_speed_ups(*task, setting, *factor);
    }
  }
  std::vector<Plot> plots;
  for (SpeedUps& task : tasks) {
    if (task.factors.size() > 1) {
      plots.push_back(speed_up_plot(std::move(task), plots.size()));
    }
  }
  return plots;
}

}  // namespace syncopate::cli
