#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::cli {

/// Gives a command with many options two helps: `-h` prints those that are used most, `--help` all.
void add_short_help(CLI::App& command);

/// Formats help texts: a blank line between groups, each text as wide as the terminal allows.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string options_used_most(const CLI::App& app) const;

  std::size_t width_;
};

}  // namespace syncopate::cli
