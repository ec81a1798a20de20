#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>

/// The log of this library: a program's own use of spdlog, with its default logger, is left alone.
namespace syncopate::log {

/// How much a process logs on standard error.
enum class Verbosity { quiet, normal, verbose };

/// From now on lines go to standard error. A program calls it once, at its start.
void set_up(Verbosity verbosity);

enum class Level { debug, info, warning };

/// From now on `take` gets every line of `least` and above, without control characters, from any
/// thread, one at a time. An empty function: lines are dropped.
void send_to(std::function<void(Level level, const std::string& line)> take, Level least);

/// True if lines of `level` go anywhere. Lines that go nowhere are not formatted.
bool should_log(Level level);

/// Logs a line. Before the first call of `set_up` or `send_to`, only warnings are logged, to
/// standard error, after the name of the library.
///
/// It is no template: every source that logs would compile the formatting of a template again.
void write(Level level, fmt::string_view text, fmt::format_args values);

template <typename... Values>
void debug(fmt::format_string<Values...> text, Values&&... values) {
  if (should_log(Level::debug)) {
    write(Level::debug, text, fmt::make_format_args(values...));
  }
}

template <typename... Values>
void info(fmt::format_string<Values...> text, Values&&... values) {
  if (should_log(Level::info)) {
    write(Level::info, text, fmt::make_format_args(values...));
  }
}

template <typename... Values>
void warn(fmt::format_string<Values...> text, Values&&... values) {
  if (should_log(Level::warning)) {
    write(Level::warning, text, fmt::make_format_args(values...));
  }
}

}  // namespace syncopate::log
