#pragma once

#include <spdlog/logger.h>

#include <functional>
#include <string>
#include <utility>

/// The log of this library: a program's own use of spdlog, with its default logger, is left alone.
namespace syncopate::log {

/// How much a process logs on standard error.
enum class Verbosity { quiet, normal, verbose };

/// From now on lines go to standard error. A program calls it once, at its start.
void set_up(Verbosity verbosity);

enum class Level { debug, info, warning };

/// From now on `take` gets every line of `least` and above, without control characters, from any
/// thread, one at a time. An empty function: nobody does.
void send_to(std::function<void(Level level, const std::string& line)> take, Level least);

/// Where lines go. Before `set_up` and `send_to`, warnings go to standard error, behind the name of
/// the library.
spdlog::logger& current();

template <typename... Values>
void debug(spdlog::format_string_t<Values...> text, Values&&... values) {
  current().debug(text, std::forward<Values>(values)...);
}

template <typename... Values>
void info(spdlog::format_string_t<Values...> text, Values&&... values) {
  current().info(text, std::forward<Values>(values)...);
}

template <typename... Values>
void warn(spdlog::format_string_t<Values...> text, Values&&... values) {
  current().warn(text, std::forward<Values>(values)...);
}

}  // namespace syncopate::log
