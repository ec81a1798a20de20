#include "cli/help_formatter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/view/terminal.hpp"
#include "spec/config_fields.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t usual_width = 100;
constexpr std::size_t least_width = 60;
constexpr std::size_t most_width = 140;

/// The options of `train` that the short help shows.
constexpr std::string_view used_most[] = {
    "scheme",  "network",      "data",        "split",          "workers",
    "cluster", "virtual-time", "batch-size",  "optimizer",      "learning-rate",
    "seed",    "aggregate",    "epochs",      "max-time",       "run-dir",
    "device",  "transport",    "local-steps", "target-accuracy"};

std::size_t page_width() {
  Style style{.width = usual_width};
  if (::isatty(STDOUT_FILENO) == 1) {
    measure_terminal(STDOUT_FILENO, style);
  }
  return std::clamp(style.width, least_width, most_width);
}

/// True also for the options that `train` does not have: these are the command's own.
bool is_used_most(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() || find_field(names.front()) == nullptr ||
         std::ranges::find(used_most, names.front()) != std::end(used_most);
}

bool has_short_help(const CLI::App& app) {
  return app.get_help_all_ptr() != nullptr;
}

/// Wraps each line of `text` separately.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream rows(text);
  for (std::string row; std::getline(rows, row);) {
    std::string line;
    std::istringstream words(row);
    for (std::string word; words >> word;) {
      if (!line.empty() && line.size() + 1 + word.size() > width) {
        lines.push_back(std::exchange(line, {}));
      }
      line += (line.empty() ? "" : " ") + word;
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

void add_short_help(CLI::App& command) {
  command.set_help_flag("-h", "print the options that are used most");
  command.set_help_all_flag("--help", "print all options");
}

HelpFormatter::HelpFormatter() : width_(page_width()) {
  column_width(30);
}

/// Unlike CLI11's version, lists commands only by name also when all options are requested.
std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) {
    return Formatter::make_help(app, std::move(name), mode);
  }
  const bool is_short = mode == CLI::AppFormatMode::Normal && has_short_help(*app);
  const std::string more = is_short ? fmt::format("\nAll options: {} --help\n", name) : "";
  return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
         (is_short ? options_used_most(*app) : make_groups(app, mode)) +
         make_subcommands(app, CLI::AppFormatMode::Normal) + "\n" + make_footer(app) + more;
}

std::string HelpFormatter::options_used_most(const CLI::App& app) const {
  return make_group("Options", false, app.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty() && is_used_most(*option);
  }));
}

/// Appends the user's program to the usage of `run`: CLI11 does not see the arguments after `--`.
std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = Formatter::make_usage(app, std::move(name));
  if (app->get_name() == "run") {
    usage.insert(usage.find_last_not_of('\n') + 1, " -- PROGRAM [ARGUMENT...]");
  }
  return usage + "\n";
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  // CLI11 writes a line end before each group and between two of them.
  return Formatter::make_group(std::move(group), is_positional, std::move(options)).substr(1);
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string text = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  if (text.size() >= column_width_) {
    text += "\n";
  } else {
    text.resize(column_width_, ' ');
  }
  const std::string indent(text.back() == '\n' ? column_width_ : 0, ' ');
  const auto lines = wrapped(option->get_description(), width_ - column_width_);
  const std::string separator = "\n" + std::string(column_width_, ' ');
  return fmt::format("{}{}{}\n", text, indent, fmt::join(lines, separator));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string value = option->get_type_name();
  return option->get_type_size() == 0 || value.empty() ? "" : " " + value;
}

}  // namespace syncopate::cli
