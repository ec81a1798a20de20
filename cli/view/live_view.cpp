#include "cli/view/live_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/view/table.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {
namespace {

constexpr std::string_view hide_cursor = "\x1b[?25l";
constexpr std::string_view show_cursor = "\x1b[?25h";
constexpr std::string_view clear_below = "\x1b[J";
constexpr std::string_view clear_line = "\r\x1b[K";

/// Columns of a line that may contain colours.
std::size_t visible_width(const std::string& line) {
  return width_of(without_colours(line));
}

/// Rows that `lines` take on a terminal of this width; long lines wrap.
std::size_t rows_of(const std::vector<std::string>& lines, std::size_t width) {
  std::size_t rows = 0;
  for (const std::string& line : lines) {
    rows += std::max<std::size_t>(1, (visible_width(line) + width - 1) / width);
  }
  return rows;
}

std::string move_up(std::size_t rows) {
  return rows == 0 ? "" : fmt::format("\x1b[{}A", rows);
}

}  // namespace

LiveView::LiveView(TrainConfig config, Style style)
    : TrainingView(std::move(config)), style_(style) {
  measure_terminal(STDOUT_FILENO, style_);
  out().write(hide_cursor);
  draw();
}

LiveView::~LiveView() {
  out().write(show_cursor);
}

void LiveView::refresh() {
  if (changed_ && !out().is_behind()) {
    draw();
  }
}

void LiveView::resized() {
  measure_terminal(STDOUT_FILENO, style_);
  erase();
  changed_ = true;
}

void LiveView::finish() {
  draw();
  if (state().finished) {
    erase();
    print_summary();
  }
}

void LiveView::show(const events::Event& event, std::string_view) {
  if (const auto* note = std::get_if<events::Note>(&event)) {
    erase();
    write_line(out(), note->text);
  }
  changed_ = true;
}

void LiveView::show_log(const std::string& line) {
  erase();
  write_line(err(), line);
  changed_ = true;
}

void LiveView::draw() {
  // Overwrites the old picture without erasing it first, so that nothing flickers.
  std::string text = move_up(rows_of(drawn_, style_.width));
  drawn_ = render_live(state(), style_);
  for (const std::string& line : drawn_) {
    // Clears the line before its text: after a full line the cursor is still on the last character.
    text += fmt::format("{}{}\n", clear_line, line);
  }
  out().write(text.append(clear_below));
  changed_ = false;
}

void LiveView::erase() {
  out().write(fmt::format("{}\r{}", move_up(rows_of(drawn_, style_.width)), clear_below));
  drawn_.clear();
}

}  // namespace syncopate::cli
