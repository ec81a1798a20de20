#pragma once

#include <string>
#include <string_view>

#include "base/log.hpp"
#include "cli/view/render.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/line_writer.hpp"

namespace syncopate::cli {

/// The amount and the form of a command's output.
struct OutputOptions {
  log::Verbosity verbosity = log::Verbosity::normal;
  bool json = false;
};

/// True if a terminal of this environment can be redrawn in place.
bool can_redraw(const Environment& environment);

/// The style for an environment: colours unless NO_COLOR (https://no-color.org) is set, Unicode if
/// the locale has it.
Style style_of(const Environment& environment);

/// Sets the size to that of the terminal if the system knows it.
void measure_terminal(int descriptor, Style& style);

/// Writes everything; gives up on an error, so that a job continues without its terminal.
void write_all(int descriptor, std::string_view text);
/// As `write_all`, without control characters: names and messages of other processes may hold
/// escape sequences, which would act on the terminal.
void write_line(int descriptor, std::string_view line);
/// As above, but never waits for the reader.
void write_line(LineWriter& to, std::string_view line);

}  // namespace syncopate::cli
