#include "cli/view/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "base/printable.hpp"

namespace syncopate::cli {
namespace {

/// The name of the locale for characters: the first of these variables that is set.
std::string character_locale(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = environment(name); !value.empty()) {
      return value;
    }
  }
  return "C";
}

bool is_utf8(std::string locale) {
  std::transform(locale.begin(), locale.end(), locale.begin(), [](unsigned char character) {
    return static_cast<char>(std::tolower(character));
  });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

}  // namespace

bool can_redraw(const Environment& environment) {
  // Open MPI's mpirun gives its ranks a terminal whose output goes into the launcher's own.
  const std::string terminal = environment("TERM");
  return !terminal.empty() && terminal != "dumb" && environment("OMPI_COMM_WORLD_RANK").empty();
}

Style style_of(const Environment& environment) {
  return {.colour = environment("NO_COLOR").empty(),
          .unicode = is_utf8(character_locale(environment))};
}

void measure_terminal(int descriptor, Style& style) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    style.width = size.ws_col;
    style.height = size.ws_row;
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void write_line(int descriptor, std::string_view line) {
  write_all(descriptor, printable_lines(line) + '\n');
}

void write_line(LineWriter& to, std::string_view line) {
  to.write(printable_lines(line) + '\n');
}

}  // namespace syncopate::cli
