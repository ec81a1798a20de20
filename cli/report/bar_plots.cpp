#include "cli/report/bar_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/compare/comparison_report.hpp"
#include "cli/view/table.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate::cli {
namespace {

/// A horizontal bar: names of any length fit beside it.
struct Bar {
  std::string name = {};
  std::optional<double> value = {};  ///< empty: a row with only its text
  double least = 0;                  ///< of the whisker
  double most = 0;
  double hatched = 0;     ///< of the value, at the end of the bar
  std::string text = {};  ///< at its end
  std::string colour = {};
};

struct BarAxis {
  std::string name;  ///< of the file
  std::string title;
  std::string caption;
  bool seconds = false;      ///< times: logarithmic if they differ much
  bool is_accuracy = false;  ///< at most 1
};

constexpr std::size_t bar_height = 30;
constexpr std::size_t axis_height = 75;
/// The axis of times is logarithmic if longest / shortest time is at least this ratio.
constexpr double wide_times = 20;
constexpr std::size_t most_devices = 16;
/// Pixels of a character (an upper estimate), and the least width of the longest bar, whatever the
/// length of the texts at the ends of bars.
constexpr std::size_t character_width = 9;
constexpr std::size_t least_bar_width = 280;

/// The name of each row, from the top down.
std::string row_tics(const std::vector<std::string>& names) {
  std::string tics;
  for (std::size_t i = 0; i < names.size(); ++i) {
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_string(names[i]), i);
  }
  return fmt::format("set yrange [{}:-0.6]\nset ytics ({}) scale 0\nset grid noytics\n",
                     static_cast<double>(names.size()) - 0.4, tics);
}

struct AxisRange {
  double from = 0;
  double to = 1;
  bool logarithmic = false;
};

/// `room`: length of the axis / length of the longest bar.
AxisRange axis_range(const BarAxis& axis, const std::vector<Bar>& bars, double room) {
  double least = HUGE_VAL;
  double most = 0;
  for (const Bar& bar : bars) {
    if (bar.value) {
      least = std::min({least, bar.least, *bar.value});
      most = std::max({most, bar.most, *bar.value});
    }
  }
  if (axis.seconds && least > 0 && most >= wide_times * least) {
    const double from = std::pow(10, std::floor(std::log10(least / 1.5)));
    return {.from = from, .to = from * std::pow(most / from, room), .logarithmic = true};
  }
  return {.to = most > 0 ? room * most : 1.0};
}

/// A bar without a value is not drawn and has no whisker; its text stands at the axis.
std::vector<std::string> bar_rows(const std::vector<Bar>& bars, double from) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const std::string numbers =
        bar.value ? fmt::format("{:.6g} {} {:.6g} {:.6g}", *bar.value, i, bar.least, bar.most)
                  : fmt::format("NaN {} NaN NaN", i);
    rows.push_back(fmt::format("{} \"{}\" 0x{} {:.6g} {:.6g}", numbers, bar.text,
                               bar.colour.substr(1), bar.value ? bar.most : from,
                               bar.value.value_or(from) - bar.hatched));
  }
  return rows;
}

/// Pixels of the longest text at the end of a bar, or of the longest one at the axis.
std::size_t text_width(const std::vector<Bar>& bars, bool at_bars) {
  std::size_t width = 0;
  for (const Bar& bar : bars) {
    width = std::max(width, bar.value.has_value() == at_bars ? width_of(bar.text) + 1 : 0);
  }
  return character_width * width;
}

/// Chooses tics of a linear axis so far apart that their numbers fit. Tics of accuracies end at 1,
/// even if the axis is longer to make room for a text.
std::string tics_of(const BarAxis& axis, const AxisRange& range) {
  const double most_tics = axis.is_accuracy ? 10 : 5;  // of three characters, or of more
  if (range.logarithmic) {
    return "set logscale x 10\n";
  }
  const double least_step = range.to / most_tics;
  const double decade = std::pow(10, std::floor(std::log10(least_step)));
  const double parts = least_step / decade;
  const double step = decade * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
  return fmt::format("set xtics 0,{:.6g}{}\n", step, axis.is_accuracy ? ",1" : "");
}

Plot bars_plot(const BarAxis& axis, const std::vector<Bar>& bars) {
  Plot plot{.name = axis.name, .caption = axis.caption};
  std::vector<std::string> names;
  std::transform(bars.begin(), bars.end(), std::back_inserter(names),
                 [](const Bar& bar) { return bar.name; });
  // Room at the right for the texts at the ends of bars.
  std::size_t longest_name = 0;
  for (const Bar& bar : bars) {
    longest_name = std::max(longest_name, width_of(bar.name));
  }
  const std::size_t beside = character_width * longest_name + 40;
  const std::size_t text = text_width(bars, true);
  plot.width =
      std::max({plot.width, beside + text + least_bar_width, beside + text_width(bars, false)});
  const auto drawn = static_cast<double>(plot.width - beside);
  const AxisRange range = axis_range(axis, bars, drawn / (drawn - static_cast<double>(text)));
  plot.data = data_block("bars", bar_rows(bars, range.from));
  plot.height = axis_height + bar_height * bars.size();
  // Each bar has its value at its end, which lines of a grid would cross.
  plot.drawing = fmt::format(
      "unset key\nset xlabel {0} offset 0,0.7\n{1}set xrange [{2:.6g}:{3:.6g}]\nset border 1\n"
      "{4}unset grid\n"
      "plot $bars using 1:2:({2:.6g}):1:($2-0.34):($2+0.34):6 with boxxyerror fillcolor rgb "
      "variable fillstyle solid 0.55 border linecolor rgb 'black', \\\n"
      "  $bars using 8:2:8:1:($2-0.34):($2+0.34) with boxxyerror fillcolor rgb 'black' "
      "fillstyle transparent pattern 4 noborder, \\\n"
      "  $bars using 1:2:3:4 with xerrorbars linecolor rgb 'black' pointtype 0 linewidth 1, \\\n"
      "  $bars using 7:2:5 with labels left offset 0.7,0\n",
      gnuplot_string(axis.title), tics_of(axis, range), range.from, range.to, row_tics(names));
  return plot;
}

/// A bar for each group that has the figure.
template <class BarOf>
std::vector<Bar> bars_of(const Setting& setting, BarOf bar_of) {
  std::vector<Bar> bars;
  for (const RunGroup& group : setting.groups) {
    if (std::optional<Bar> bar = bar_of(group.figures)) {
      bar->name = shown_name(group.figures);
      bar->colour = group.look.colour;
      bars.push_back(std::move(*bar));
    }
  }
  return bars;
}

Bar plain_bar(double value) {
  return {.value = value, .least = value, .most = value, .text = number_text(value)};
}

std::optional<Bar> throughput_bar(const ContestantFigures& one) {
  return one.throughput ? std::optional(plain_bar(*one.throughput)) : std::nullopt;
}

/// A scheme that was tested and missed the target has a row that says so.
std::optional<Bar> time_bar(const ContestantFigures& one) {
  if (!one.time_to_target) {
    return one.accuracy ? std::optional(Bar{.text = one.reached == 0
                                                        ? "not reached"
                                                        : fmt::format("reached by {} of {} runs",
                                                                      one.reached, one.runs)})
                        : std::nullopt;
  }
  const Spread& time = *one.time_to_target;
  return Bar{.value = time.median,
             .least = time.least,
             .most = std::max(time.most, time.median),
             .text = number_text(time.median)};
}

std::optional<Bar> accuracy_bar(const ContestantFigures& one) {
  if (!one.accuracy) {
    return std::nullopt;
  }
  const auto [mean, deviation] = *one.accuracy;
  return Bar{.value = mean,
             .least = std::max(0.0, mean - deviation),
             .most = mean + deviation,
             .text = accuracy_text(one)};
}

/// Kilobytes that each sample costs; at the end of the bar those in shared memory.
std::optional<Bar> exchanged_bar(const ContestantFigures& one) {
  const auto found = one.totals_per_sample.find("exchanged_bytes");
  if (found == one.totals_per_sample.end()) {
    return std::nullopt;
  }
  Bar bar = plain_bar(found->second / 1000);
  const auto local = one.totals.find("local_bytes");
  if (local != one.totals.end()) {
    bar.hatched = *bar.value * ratio(local->second, one.totals.at("exchanged_bytes"));
  }
  return bar;
}

std::optional<Bar> communication_bar(const ContestantFigures& one) {
  const auto range = range_of(one.devices, &DeviceFigures::communication);
  if (!range) {
    return std::nullopt;
  }
  double sum = 0;
  for (const DeviceFigures& device : one.devices) {
    sum += device.communication;
  }
  const double mean = 100 * sum / static_cast<double>(one.devices.size());
  return Bar{.value = mean,
             .least = 100 * range->least,
             .most = 100 * range->most,
             .text = fmt::format("{:.3g} %", mean)};
}

/// The devices of the cluster, which the contestant with the most devices has.
const std::vector<DeviceFigures>& all_devices(const Setting& setting) {
  return std::max_element(setting.groups.begin(), setting.groups.end(),
                          [](const RunGroup& one, const RunGroup& other) {
                            return one.figures.devices.size() < other.figures.devices.size();
                          })
      ->figures.devices;
}

/// "gpu-new" of "gpu-new (emulated)".
std::string short_device(const std::string& name) {
  return name.substr(0, name.find(" ("));
}

/// The groups that have the figures of all devices.
std::vector<const RunGroup*> with_devices(const Setting& setting, std::size_t devices) {
  std::vector<const RunGroup*> groups;
  for (const RunGroup& group : setting.groups) {
    if (devices > 0 && group.figures.devices.size() == devices) {
      groups.push_back(&group);
    }
  }
  return groups;
}

/// The bars of one group: one per device, `place` steps of `width` below the first group's.
std::vector<std::string> computing_rows(const ContestantFigures& one, std::size_t shown,
                                        std::size_t place, double width) {
  std::vector<std::string> rows;
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const double top = static_cast<double>(rank) - 0.4 + width * static_cast<double>(place);
    rows.push_back(
        fmt::format("{:.6g} {:.6g} {:.6g}", 100 * one.devices[rank].computing, top, top + width));
  }
  return rows;
}

std::optional<Plot> computing_plot(const Setting& setting) {
  const std::vector<DeviceFigures>& devices = all_devices(setting);
  const std::vector<const RunGroup*> groups = with_devices(setting, devices.size());
  if (groups.empty()) {
    return std::nullopt;
  }
  const std::size_t shown = std::min(devices.size(), most_devices);
  Plot plot{.name = "computing-time",
            .caption =
                "Computing time ratio of each device: data, forward, backward and local "
                "update over training time."};
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < shown; ++rank) {
    names.push_back(fmt::format("{} {}", rank, short_device(devices[rank].name)));
  }
  std::vector<std::string> titles;
  std::string bars;
  for (std::size_t place = 0; place < groups.size(); ++place) {
    const std::string block = fmt::format("group{}", place);
    const Look& look = groups[place]->look;
    plot.data += data_block(block, computing_rows(groups[place]->figures, shown, place,
                                                  0.8 / static_cast<double>(groups.size())));
    titles.push_back(shown_name(groups[place]->figures));
    bars += fmt::format(
        "{}${} using 1:2:(0):1:2:3 with boxxyerror fillcolor rgb '{}' fillstyle pattern {} border "
        "linecolor rgb 'black' title {}",
        place == 0 ? "plot " : ", \\\n  ", block, look.colour, look.pattern,
        gnuplot_string(titles.back()));
  }
  plot.height = axis_height + shown * (14 + 13 * groups.size());
  add_legend(plot, titles);
  plot.drawing +=
      "set border 1\nset xlabel 'computing time ratio (%)' offset 0,0.7\n"
      "set xrange [0:100]\n" +
      row_tics(names) + bars + "\n";
  return plot;
}

bool any_reached(const std::vector<Bar>& bars) {
  return std::any_of(bars.begin(), bars.end(), [](const Bar& bar) { return bar.value; });
}

}  // namespace

std::vector<Plot> bar_plots(const Setting& setting) {
  std::vector<Plot> plots;
  const auto add = [&](const BarAxis& axis, const std::vector<Bar>& bars) {
    if (!bars.empty()) {
      plots.push_back(bars_plot(axis, bars));
    }
  };
  add({"throughput", "throughput (samples/s)",
       "Samples whose gradients entered the model, per second of training time: median over "
       "seeds."},
      bars_of(setting, throughput_bar));
  if (auto bars = bars_of(setting, time_bar); any_reached(bars)) {
    add({.name = "time-to-accuracy",
         .title = fmt::format("time to test accuracy {:g} (s)", *setting.target),
         .caption =
             fmt::format("Training time to a test accuracy of {:g}: median over seeds; whiskers: "
                         "least and most. A scheme has no bar where its median run did not "
                         "reach it.",
                         *setting.target),
         .seconds = true},
        bars);
  }
  add({.name = "accuracy",
       .title = "test accuracy",
       .caption = "Test accuracy at the end: mean over seeds; whiskers: one standard deviation.",
       .is_accuracy = true},
      bars_of(setting, accuracy_bar));
  add({"exchanged", "exchanged (kB per sample)",
       "Bytes that workers and servers exchange for each sample: messages, headers included, and, "
       "hatched, values in shared memory; median over seeds."},
      bars_of(setting, exchanged_bar));
  add({"communication", "communication ratio (%)",
       "Share of the training time in which communication holds a device: mean over devices; "
       "whiskers: least and most."},
      bars_of(setting, communication_bar));
  if (auto plot = computing_plot(setting)) {
    plots.push_back(std::move(*plot));
  }
  return plots;
}

}  // namespace syncopate::cli
