#pragma once

#include <string>
#include <string_view>

#include "base/log.hpp"
#include "cli/view/render.hpp"
#include "job/launch/environment.hpp"

namespace syncopate::cli {

/// How much a command prints, and in which form.
struct OutputOptions {
  log::Verbosity verbosity = log::Verbosity::normal;
  bool json = false;
};

/// Whether a terminal of this environment can be redrawn in place.
bool can_redraw(const Environment& environment);

/// Colours unless NO_COLOR (https://no-color.org) is set; characters as the locale has them.
Style style_of(const Environment& environment);

/// Sets the size to that of the terminal, where it is known.
void measure_terminal(int descriptor, Style& style);

/// Writes everything; gives up where nobody reads any more: a job goes on without its terminal.
void write_all(int descriptor, std::string_view text);
void write_line(int descriptor, std::string_view line);

}  // namespace syncopate::cli
