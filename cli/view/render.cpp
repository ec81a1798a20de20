#include "cli/view/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/whole.hpp"
#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The marks and colours of the three shares of a worker's time.
struct Ink {
  const char* mark;
  const char* colour;  ///< escape sequence before the mark
};

using Inks = std::array<Ink, 3>;  // compute, communicate, wait
constexpr Inks unicode_inks{{{"█", "\x1b[32m"}, {"▒", "\x1b[33m"}, {"·", "\x1b[2m"}}};
constexpr Inks ascii_inks{{{"#", "\x1b[32m"}, {"=", "\x1b[33m"}, {".", "\x1b[2m"}}};
constexpr const char* plain_again = "\x1b[0m";

std::string times(std::size_t count, const char* mark) {
  std::string text;
  for (; count > 0; --count) {
    text += mark;
  }
  return text;
}

std::string painted(const std::string& text, const char* colour, const Style& style) {
  return style.colour && !text.empty() ? colour + text + plain_again : text;
}

/// Columns of a bar up to a share of its width.
std::size_t columns_up_to(double share, std::size_t width) {
  const double columns = std::round(share * static_cast<double>(width));
  return static_cast<std::size_t>(std::clamp(columns, 0.0, static_cast<double>(width)));
}

std::string bar(const std::array<double, 3>& shares, std::size_t width, const Style& style) {
  const Inks& inks = style.unicode ? unicode_inks : ascii_inks;
  std::string text;
  std::size_t filled = 0;
  double share = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    share += std::isfinite(shares[i]) ? shares[i] : 0;
    const std::size_t end = std::max(filled, columns_up_to(share, width));
    text += painted(times(end - filled, inks[i].mark), inks[i].colour, style);
    filled = end;
  }
  return text + std::string(width - filled, ' ');
}

std::string legend(const Style& style) {
  const Inks& inks = style.unicode ? unicode_inks : ascii_inks;
  return fmt::format("compute {} communicate {} wait {}", inks[0].mark, inks[1].mark, inks[2].mark);
}

/// Widths of the columns that adapt to the terminal; a bar too short to show anything is not drawn.
struct Layout {
  static constexpr std::size_t others = 6 + 2 + 2 + 10 + 2 + 2 + 8;  // includes the gaps
  static constexpr std::size_t shortest_bar = 10;
  static constexpr std::size_t steps = 12;       ///< steps × size
  static constexpr std::size_t step_time = 10;   ///< includes the gap
  static constexpr std::size_t reason = 2 + 26;  ///< includes the gap

  std::size_t device = 10;
  std::size_t bar = 0;
  std::size_t pace = 0;  ///< all of it
  bool shows_step_time = false;
  bool shows_reason = false;

  Layout(const JobState& state, const Style& style) {
    for (const auto& worker : state.started->workers) {
      device = std::clamp(width_of(worker.device), device, std::size_t{28});
    }
    const std::size_t used = others + device;
    std::size_t left = style.width > used ? style.width - used : 0;
    if (state.status->round_seconds) {
      choose_pace(left);
      left -= pace > 0 ? pace + 2 : 0;
    }
    bar = left < shortest_bar ? 0 : std::min(left, std::size_t{40});
  }

 private:
  /// Chooses the columns that fit. The reason has precedence over the time of a step.
  void choose_pace(std::size_t left) {
    for (const bool with_reason : {true, false}) {
      for (const bool with_time : {true, false}) {
        const std::size_t width = steps + (with_time ? step_time : 0) + (with_reason ? reason : 0);
        if (pace == 0 && (with_time || with_reason) && left >= width + 2 + shortest_bar) {
          pace = width;
          shows_step_time = with_time;
          shows_reason = with_reason;
        }
      }
    }
  }
};

/// "30.0 ms", "3.50 s"
std::string short_time(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.2f} s", seconds);
}

/// "   7 × 64     30.0 ms  no time for another step": this round's steps, their size and time, and
/// the reason of the last order to the worker, or how rarely it synchronizes.
std::string pace_text(const events::Status::Worker& worker, const Layout& layout,
                      const Style& style) {
  if (!worker.pace) {
    return "";
  }
  const events::Status::Pace& pace = *worker.pace;
  std::string text =
      fmt::format("{:>4} {} {:<5}", pace.steps, style.unicode ? "×" : "x", pace.step_samples);
  if (layout.shows_step_time) {
    text += fmt::format("{:>10}", short_time(pace.step_seconds));
  }
  if (layout.shows_reason) {
    const std::string usual =
        pace.period > 1 ? fmt::format("one round in {}", pace.period) : pace.reason;
    text += "  " + (pace.overdue ? "overdue" : usual);
  }
  return text;
}

/// The head of the column that `pace_text` fills.
std::string pace_head(const Layout& layout, const Style& style) {
  return fmt::format("steps {} size{}{}", style.unicode ? "×" : "x",
                     layout.shows_step_time ? " step time" : "",
                     layout.shows_reason ? "  reason" : "");
}

/// Returns an empty text if the layout has no such column.
std::string column(const std::string& text, std::size_t width) {
  return width == 0 ? "" : "  " + fitted(text, width);
}

std::string device_of(const JobState& state, std::uint32_t rank) {
  for (const auto& worker : state.started->workers) {
    if (worker.rank == rank) {
      return worker.device;
    }
  }
  return "";
}

std::string head_line(const Layout& layout, const Style& style) {
  const std::string text = fmt::format(
      "worker  {}  {:>10}  {}  {:>8}{}", fitted("device", layout.device), "samples/s",
      fitted("time", layout.bar), "round", column(pace_head(layout, style), layout.pace));
  return painted(fitted(text, style.width), "\x1b[2m", style);
}

std::string worker_line(const JobState& state, const events::Status::Worker& worker,
                        const Layout& layout, const Style& style) {
  const std::string begin = fmt::format("{:>6}  {}  {:>10}  ", worker.rank,
                                        fitted(device_of(state, worker.rank), layout.device),
                                        rate_figure(worker.samples_per_second));
  const std::string end = fmt::format("  {:>8}{}", grouped(worker.round),
                                      column(pace_text(worker, layout, style), layout.pace));
  if (layout.bar == 0) {
    return fitted(begin + end, style.width);
  }
  return begin + bar({worker.compute, worker.communicate, worker.wait}, layout.bar, style) + end;
}

/// True for programs with their own loops, which do not report their end, losses and tests.
bool is_of_programs(const JobState& state) {
  return state.config.epochs >= open_end;
}

/// Returns an empty text if the job does not know the loss.
std::string loss_text(const JobState& state) {
  return state.has_had_loss ? fmt::format("   loss {:.4f}", state.status->loss) : "";
}

std::string accuracy_text(const JobState& state) {
  if (!state.evaluation) {
    return is_of_programs(state) ? "" : "   accuracy -";
  }
  std::string text = fmt::format("   accuracy {:.4f} (best {:.4f}", state.evaluation->accuracy,
                                 state.best_accuracy.value_or(0));
  if (state.config.target_accuracy) {
    text += fmt::format(", target {}", *state.config.target_accuracy);
  }
  return text + ")";
}

std::string progress_text(const JobState& state) {
  const events::Status& status = *state.status;
  const double round = status.round_seconds.value_or(0);
  return fmt::format("epoch {:.2f}{}   {} samples/s{}{}{}", status.epoch,
                     is_of_programs(state) ? "" : fmt::format(" of {}", state.config.epochs),
                     rate_figure(status.throughput), loss_text(state), accuracy_text(state),
                     round > 0 ? "   rounds of " + short_time(round) : "");
}

std::string time_text(const JobState& state) {
  const std::string elapsed =
      fmt::format("{} {}", state.config.virtual_time ? "virtual time" : "elapsed",
                  clock_text(state.status->training_seconds));
  if (is_of_programs(state)) {
    return elapsed;
  }
  const auto remaining = state.remaining_seconds();
  return fmt::format("{}   remaining {}", elapsed, remaining ? clock_text(*remaining) : "-");
}

/// Appends the legend if all of it fits.
std::string with_legend(const std::string& text, const Layout& layout, const Style& style) {
  const std::string longer = text + "   " + legend(style);
  return layout.bar > 0 && width_of(longer) <= style.width ? longer : text;
}

const char* world_text(const events::Started& started) {
  return started.virtual_time ? ", in virtual time" : "";
}

std::string title(const JobState& state) {
  const events::Started& job = *state.started;
  return fmt::format("{}: {} on {}{}, {}", job.scheme, job.network, job.data, world_text(job),
                     job.run_dir);
}

std::string cell(const Json& object, const char* name, std::string (*show)(double)) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? "-" : show(found->get<double>());
}

std::string whole_text(double value) {
  return grouped(whole_of(value));
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string accuracy_figure(double accuracy) {
  return fmt::format("{:.4f}", accuracy);
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.2f} s", seconds);
}

std::string rate_text(double rate) {
  return rate_figure(rate) + " samples/s";
}

std::vector<std::string> worker_table(const Json& summary) {
  Table table({{"worker"},
               {"device", Table::Align::left},
               {"samples"},
               {"steps"},
               {"computing"},
               {"communication"},
               {"wait"},
               {"exchanged"}});
  for (const Json& worker : summary.value("workers", Json::array())) {
    table.add({cell(worker, "rank", whole_text), worker.value("device", "-"),
               cell(worker, "samples", whole_text), cell(worker, "steps", whole_text),
               cell(worker, "computing_time_ratio", percent_text),
               cell(worker, "communication_ratio", percent_text),
               cell(worker, "wait_ratio", percent_text),
               cell(worker, "exchanged_bytes", bytes_text)});
  }
  return table.lines();
}

std::string staleness_text(const Json& staleness) {
  return fmt::format("median {}, p99 {}, at most {}", cell(staleness, "median", whole_text),
                     cell(staleness, "p99", whole_text), cell(staleness, "max", whole_text));
}

std::string server_text(const Json& server) {
  const Json queue = server.value("queue_length", Json::object());
  return fmt::format("{} updates, busy {}, {} exchanged, queue of {:.1f}",
                     cell(server, "updates", whole_text), cell(server, "busy_ratio", percent_text),
                     cell(server, "exchanged_bytes", bytes_text), queue.value("mean", 0.0));
}

/// Names and values of the figures that only asynchronous jobs have.
std::vector<std::pair<std::string, std::string>> facts_of_going_apart(const Json& summary) {
  std::vector<std::pair<std::string, std::string>> facts;
  const Json staleness = summary.value("staleness", Json::object());
  if (staleness.value("max", 0) > 0) {
    facts.emplace_back("staleness", staleness_text(staleness));
  }
  if (summary.value("dropped_gradients", 0) > 0) {
    facts.emplace_back("dropped", cell(summary, "dropped_gradients", whole_text) + " gradients");
  }
  if (summary.value("skipped_batches", 0) > 0) {
    facts.emplace_back("not finite", cell(summary, "skipped_batches", whole_text) + " batches");
  }
  for (const Json& server : summary.value("servers", Json::array())) {
    facts.emplace_back("server " + cell(server, "shard", whole_text), server_text(server));
  }
  for (const Json& worker : summary.value("workers", Json::array())) {
    if (const Json reason = worker.value("dropped_because", Json()); reason.is_string()) {
      facts.emplace_back("lost", reason.get<std::string>());
    }
  }
  return facts;
}

/// The lowest ratio and the highest error over all workers; empty without compression.
std::string compression_text(const Json& summary) {
  double least_ratio = 0;
  double greatest_error = 0;
  for (const Json& worker : summary.value("workers", Json::array())) {
    const Json compression = worker.value("compression", Json());
    if (compression.is_object()) {
      const double ratio = compression.value("ratio", 0.0);
      least_ratio = least_ratio > 0 ? std::min(least_ratio, ratio) : ratio;
      greatest_error = std::max(greatest_error, compression.value("relative_error", 0.0));
    }
  }
  return least_ratio > 0
             ? fmt::format("{}: {:.3g} to 1, relative error {:.2g} %",
                           summary.value("compress", "-"), least_ratio, 100 * greatest_error)
             : "";
}

/// Empty unless the run began before its last session, whose figures are then not the run's.
std::string last_session(const Json& summary) {
  const double session = summary.value("session_seconds", 0.0);
  const bool is_part = session > 0 && session < summary.value("training_seconds", 0.0);
  return is_part ? seconds_text(session) + ": the table, efficiency, bytes and staleness are of it"
                 : "";
}

std::string time_to_target(const Json& summary) {
  const std::string time = cell(summary, "time_to_target_seconds", seconds_text);
  return time == "-" ? "not reached" : time;
}

}  // namespace

std::vector<std::string> render_live(const JobState& state, const Style& style) {
  if (!state.started || !state.status) {
    return {fitted("starting", style.width)};
  }
  const Layout layout(state, style);
  constexpr std::size_t lines_around = 6;  // title, head, more, progress, time, and one left free
  const std::size_t room = style.height > lines_around ? style.height - lines_around : 1;
  const auto& workers = state.status->workers;
  std::vector<std::string> lines{painted(fitted(title(state), style.width), "\x1b[1m", style),
                                 head_line(layout, style)};
  for (std::size_t i = 0; i < std::min(room, workers.size()); ++i) {
    lines.push_back(worker_line(state, workers[i], layout, style));
  }
  if (workers.size() > room) {
    lines.push_back(fitted(fmt::format("and {} more", workers.size() - room), style.width));
  }
  lines.push_back(fitted(progress_text(state), style.width));
  lines.push_back(fitted(with_legend(time_text(state), layout, style), style.width));
  return lines;
}

std::string status_line(const JobState& state) {
  return fmt::format("{}   {}", clock_text(state.status->training_seconds), progress_text(state));
}

std::string evaluation_line(const EvaluationResult& evaluation) {
  return fmt::format("{}   epoch {:.2f}   round {}   test accuracy {:.4f}   test loss {:.4f}",
                     clock_text(evaluation.training_seconds), evaluation.epoch,
                     grouped(evaluation.round), evaluation.accuracy, evaluation.loss);
}

std::string started_line(const events::Started& started) {
  return fmt::format("{}: {} on {}, {} worker{}{}, {}", started.scheme, started.network,
                     started.data, started.workers.size(), started.workers.size() == 1 ? "" : "s",
                     world_text(started), started.run_dir);
}

std::vector<std::string> render_summary(const Json& summary, const std::string& run_dir) {
  std::vector<std::string> lines = worker_table(summary);
  lines.emplace_back();
  const auto add = [&](const std::string& name, const std::string& figure) {
    lines.push_back(fitted(name, 20) + figure);
  };
  if (summary.value("accuracy", Json()).is_number()) {
    add("accuracy", fmt::format("{} (best {})", cell(summary, "accuracy", accuracy_figure),
                                cell(summary, "best_accuracy", accuracy_figure)));
  }
  if (const Json target = summary.value("target_accuracy", Json()); target.is_number()) {
    add(fmt::format("time to {}", target.get<double>()), time_to_target(summary));
  }
  add("throughput", cell(summary, "throughput", rate_text));
  add("cluster efficiency", cell(summary, "cluster_efficiency", percent_text));
  add("training clock", cell(summary, "training_seconds", seconds_text) +
                            (summary.value("virtual_time", false) ? " of virtual time" : ""));
  if (const std::string session = last_session(summary); !session.empty()) {
    add("last session", session);
  }
  for (const MetricSpec& metric : labelled_metrics()) {
    const std::string name(metric.names.summary);
    if (summary.value(name, 0.0) > 0) {
      add(std::string(metric.label), cell(summary, name.c_str(), text_for(metric.unit)));
    }
  }
  if (const std::string compression = compression_text(summary); !compression.empty()) {
    add("compression", compression);
  }
  for (const auto& [name, figure] : facts_of_going_apart(summary)) {
    add(name, figure);
  }
  add("run folder", run_dir);
  if (const Json lost = summary.value("lost_model", Json()); lost.is_object()) {
    add("lost model", lost.value("text", ""));
  }
  return lines;
}

std::string clock_text(double seconds) {
  const std::uint64_t whole = whole_of(seconds);
  const std::uint64_t hours = whole / 3600;
  const std::uint64_t minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string (*text_for(MetricUnit unit))(double value) {
  switch (unit) {
    case MetricUnit::count: return whole_text;
    case MetricUnit::bytes: return bytes_text;
    case MetricUnit::seconds: return seconds_text;
    case MetricUnit::ratio: return percent_text;
    case MetricUnit::per_second: return rate_text;
    case MetricUnit::number: return accuracy_figure;
  }
  return whole_text;
}

}  // namespace syncopate::cli
