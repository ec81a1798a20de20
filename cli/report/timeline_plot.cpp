#include "cli/report/timeline_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/compare/comparison_report.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t most_workers_shown = 16;
constexpr std::size_t worker_height = 17;
constexpr std::size_t title_above = 22;  ///< of a panel
/// Share of a panel's width below which a slice has no border and pattern: these would make it look
/// wider.
constexpr double narrow_share = 0.01;

struct ActivityLook {
  Activity activity;
  const char* name;
  const char* colour;
  int pattern;
};

constexpr std::array<ActivityLook, 4> activity_looks{
    {{Activity::compute, "compute", "#0072B2", 3},
     {Activity::communicate, "communicate", "#D55E00", 2},
     {Activity::wait, "wait", "#999999", 4},
     {Activity::data, "data", "#E69F00", 1}}};

/// True if the process of a resumed run began between two lines of a worker's log.
bool began_between(const RoundTimes& from, const RoundTimes& to) {
  return to.data < from.data || to.compute < from.compute || to.communicate < from.communicate ||
         to.wait < from.wait;
}

/// The times between two lines of a worker's log. The process of a resumed run sums from 0, but the
/// training clock goes on.
RoundTimes difference_of(const RoundTimes& from, const RoundTimes& to) {
  if (began_between(from, to)) {
    return difference_of({.end = from.end}, to);
  }
  return {.end = to.end - from.end,
          .data = to.data - from.data,
          .compute = to.compute - from.compute,
          .communicate = to.communicate - from.communicate,
          .wait = to.wait - from.wait};
}

/// The lines that end a round at different times: with overlap, two rounds may end at once.
std::vector<RoundTimes> with_start(const std::vector<RoundTimes>& rounds) {
  std::vector<RoundTimes> all{{}};
  for (const RoundTimes& round : rounds) {
    if (round.end > all.back().end) {
      all.push_back(round);
    }
  }
  return all;
}

struct Window {
  double begin = 0;
  double end = 0;
};

/// The round of one worker that contains the middle of the run.
Window middle_of(const std::vector<RoundTimes>& rounds, double middle) {
  const auto end =
      std::upper_bound(rounds.begin() + 1, rounds.end() - 1, middle,
                       [](double time, const RoundTimes& round) { return time < round.end; });
  return {(end - 1)->end, end->end};
}

void add_slices(TimeLine& line, std::size_t worker, const std::vector<RoundTimes>& rounds,
                const Window& window) {
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    if (rounds[i].end <= window.begin || rounds[i - 1].end >= window.end) {
      continue;
    }
    const RoundTimes spent = difference_of(rounds[i - 1], rounds[i]);
    const double sum = spent.data + spent.compute + spent.wait + spent.communicate;
    const double scale = sum > spent.end ? spent.end / sum : 1;
    double at = rounds[i - 1].end;
    const std::array<std::pair<Activity, double>, 4> parts{
        {{Activity::data, spent.data},
         {Activity::compute, spent.compute},
         {Activity::wait, spent.wait},
         {Activity::communicate, spent.communicate}}};
    for (const auto& [activity, seconds] : parts) {
      const double begin = std::max(at, window.begin);
      const double end = std::min(at + scale * seconds, window.end);
      if (end > begin) {
        line.slices.push_back({worker, activity, begin - window.begin, end - window.begin});
      }
      at += scale * std::max(0.0, seconds);
    }
  }
}

struct Panel {
  std::string title;
  std::size_t workers = 0;
  TimeLine line;
};

std::vector<Panel> panels_of(const Setting& setting) {
  std::vector<Panel> panels;
  for (const RunGroup& group : setting.groups) {
    for (const RunRecord& run : group.runs) {
      if (auto line = middle_round(run.workers)) {
        panels.push_back({shown_name(group.figures),
                          std::min(run.workers.size(), most_workers_shown), std::move(*line)});
        break;
      }
    }
  }
  return panels;
}

/// Seconds, or milliseconds if a round is short.
struct TimeUnit {
  const char* name;
  double per_second;
};

TimeUnit unit_for(double seconds) {
  return seconds < 1 ? TimeUnit{"ms", 1000} : TimeUnit{"s", 1};
}

enum class Width { narrow, wide };
constexpr std::array<Width, 2> widths{Width::narrow, Width::wide};

std::vector<std::string> slice_rows(const Panel& panel, Activity activity, Width width) {
  const double scale = unit_for(panel.line.seconds).per_second;
  const double narrow = narrow_share * panel.line.seconds;
  std::vector<std::string> rows;
  for (const TimeSlice& slice : panel.line.slices) {
    const bool fits = (slice.end - slice.begin < narrow) == (width == Width::narrow);
    if (fits && slice.activity == activity && slice.worker < panel.workers) {
      rows.push_back(
          fmt::format("{:.6g} {} {:.6g}", scale * slice.begin, slice.worker, scale * slice.end));
    }
  }
  return rows;
}

std::string block_name(std::size_t panel, std::size_t look, Width width) {
  return fmt::format("panel{}_{}{}", panel, look, width == Width::narrow ? "_narrow" : "");
}

std::string fill_of(const ActivityLook& look, Width width) {
  return width == Width::narrow
             ? fmt::format("fillcolor rgb '{}' fillstyle solid noborder", look.colour)
             : fmt::format("fillcolor rgb '{0}' fillstyle pattern {1} border linecolor rgb '{0}'",
                           look.colour, look.pattern);
}

/// The bars of one panel, and the legend's entries in the last one.
std::string panel_command(std::size_t index, const Panel& panel, bool with_key) {
  std::string command = "plot ";
  std::string separator;
  for (std::size_t i = 0; i < activity_looks.size(); ++i) {
    const ActivityLook& look = activity_looks[i];
    for (const Width width : widths) {
      if (!slice_rows(panel, look.activity, width).empty()) {
        command += fmt::format("{}${} using 1:2:1:3:($2-0.38):($2+0.38) with boxxyerror {} notitle",
                               separator, block_name(index, i, width), fill_of(look, width));
        separator = ", \\\n  ";
      }
    }
    if (with_key) {
      command += fmt::format("{}NaN with boxes {} title '{}'", separator,
                             fill_of(look, Width::wide), look.name);
      separator = ", \\\n  ";
    }
  }
  return command + "\n";
}

std::string worker_tics(std::size_t workers) {
  std::string tics;
  for (std::size_t i = 0; i < workers; ++i) {
    tics += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", i, i);
  }
  return tics;
}

LegendSize activity_legend() {
  std::vector<std::string> names;
  std::transform(activity_looks.begin(), activity_looks.end(), std::back_inserter(names),
                 [](const ActivityLook& look) { return look.name; });
  return legend_size(names, Plot{}.width);
}

std::size_t height_of(const Panel& panel) {
  return title_above + axis_below + worker_height * panel.workers;
}

std::string panel_drawing(std::size_t index, const Panel& panel, double top, double bottom,
                          bool last) {
  const TimeUnit unit = unit_for(panel.line.seconds);
  return fmt::format(
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set label 1 {} at graph 0, graph 1 left offset 0,0.7\n"
      "set ylabel 'worker'\nset xlabel 'time ({})' offset 0,0.8\nset "
      "border 1\n"
      "set xrange [0:{:.6g}]\nset yrange [{}:-0.6]\nset ytics ({}) scale 0\nunset grid\n{}{}",
      top, bottom, gnuplot_string(panel.title), unit.name, unit.per_second * panel.line.seconds,
      static_cast<double>(panel.workers) - 0.4, worker_tics(panel.workers),
      last ? legend_command(activity_legend()) : "unset key\n", panel_command(index, panel, last));
}

}  // namespace

std::optional<TimeLine> middle_round(const std::vector<std::vector<RoundTimes>>& workers) {
  std::vector<std::vector<RoundTimes>> all;
  double end = 0;
  for (const auto& worker : workers) {
    all.push_back(with_start(worker));
    if (all.back().size() < 2) {
      return std::nullopt;
    }
    end = std::max(end, all.back().back().end);
  }
  if (all.empty()) {
    return std::nullopt;
  }
  const Window window =
      middle_of(*std::min_element(all.begin(), all.end(),
                                  [](const auto& one, const auto& other) {
                                    return static_cast<double>(one.size()) / one.back().end <
                                           static_cast<double>(other.size()) / other.back().end;
                                  }),
                end / 2);
  TimeLine line{.seconds = window.end - window.begin};
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    add_slices(line, worker, all[worker], window);
  }
  return line;
}

std::optional<Plot> timeline_plot(const Setting& setting) {
  const std::vector<Panel> panels = panels_of(setting);
  if (panels.empty()) {
    return std::nullopt;
  }
  Plot plot{.name = "timeline",
            .caption =
                "One round in the middle of a run, or one step of the slowest device where "
                "there are no rounds. Within a round the order of activities is that of a "
                "step. White is none of these, such as a snapshot for a test or a checkpoint. "
                "Each scheme has its own scale."};
  plot.height = activity_legend().height;
  for (const Panel& panel : panels) {
    plot.height += height_of(panel);
  }
  plot.drawing = "set multiplot\nset lmargin at screen 0.13\nset rmargin at screen 0.95\n";
  const auto whole = static_cast<double>(plot.height);
  double top = whole;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    for (std::size_t j = 0; j < activity_looks.size(); ++j) {
      for (const Width width : widths) {
        const auto rows = slice_rows(panels[i], activity_looks[j].activity, width);
        if (!rows.empty()) {
          plot.data += data_block(block_name(i, j, width), rows);
        }
      }
    }
    const double bottom = top - static_cast<double>(height_of(panels[i]));
    plot.drawing += panel_drawing(i, panels[i], (top - title_above) / whole,
                                  (bottom + axis_below) / whole, i + 1 == panels.size());
    top = bottom;
  }
  plot.drawing += "unset multiplot\n";
  return plot;
}

}  // namespace syncopate::cli
