#include "cli/compare/comparison_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/compare/comparison_report.hpp"
#include "cli/view/table.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {
namespace {

constexpr std::string_view clear_line = "\r\x1b[K";

std::string outcome_text(const RunFigures& figures, std::optional<double> target) {
  std::string text =
      figures.accuracy ? fmt::format("accuracy {:.4f}", *figures.accuracy) : "accuracy -";
  if (target) {
    text += figures.time_to_target
                ? fmt::format(", {} after {} s", *target, seconds_figure(*figures.time_to_target))
                : fmt::format(", {} not reached", *target);
  }
  return text;
}

}  // namespace

std::string about(double seconds) {
  if (seconds < 90) {
    return fmt::format("about {:.0f} s", std::ceil(seconds / 5) * 5);
  }
  return seconds < 90 * 60 ? fmt::format("about {:.0f} min", seconds / 60)
                           : fmt::format("about {:.1f} h", seconds / 3600);
}

ComparisonProgress::ComparisonProgress(const OutputOptions& output, std::size_t runs,
                                       std::optional<double> target)
    : json_(output.json),
      quiet_(output.verbosity == log::Verbosity::quiet),
      redraws_(!json_ && !quiet_ && ::isatty(STDOUT_FILENO) == 1 && can_redraw(from_environment)),
      runs_(runs),
      target_(target) {}

ComparisonProgress::~ComparisonProgress() {
  erase();
}

void ComparisonProgress::note(const std::string& text) {
  if (!json_ && !quiet_) {
    line(text);
  }
}

void ComparisonProgress::ended(const Run& run, const RunFigures& figures, bool earlier) {
  ++ended_;
  if (json_) {
    nlohmann::ordered_json event{{"event", "run"}, {"name", run.name()}, {"earlier", earlier}};
    event.update(to_json(figures));
    write_line(STDOUT_FILENO, event.dump());
    return;
  }
  note(fmt::format("[{}/{}] {}: {}{}", ended_, runs_, run.name(), outcome_text(figures, target_),
                   earlier ? " (done before)" : ""));
}

void ComparisonProgress::under_way(const std::string& what, std::optional<double> remaining) {
  if (!redraws_) {
    return;
  }
  Style style;
  measure_terminal(STDOUT_FILENO, style);
  const std::string left = remaining ? about(*remaining) + " left" : "time left unknown";
  const std::string text = fmt::format("{} of {} done, {}; {}", ended_, runs_, left, what);
  // Leaves the last column free: a full line would make the terminal begin another one.
  write_all(STDOUT_FILENO, fmt::format("{}{}", clear_line, fitted(text, style.width - 1)));
  drawn_ = true;
}

void ComparisonProgress::erase() {
  if (drawn_) {
    write_all(STDOUT_FILENO, clear_line);
    drawn_ = false;
  }
}

void ComparisonProgress::line(const std::string& text) {
  erase();
  write_line(STDOUT_FILENO, text);
}

}  // namespace syncopate::cli
