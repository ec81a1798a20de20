#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// One command: its place on the command line, and what it does once that has been parsed.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

// One file a command, under commands/. Each adds the command's options to `root`.
Command add_train(CLI::App& root, const Handlers& handlers);
Command add_coordinator(CLI::App& root, const Handlers& handlers);
/// `role`: worker or server.
Command add_joiner(CLI::App& root, const Handlers& handlers, Role role);
Command add_compare(CLI::App& root, const Handlers& handlers);
Command add_bench(CLI::App& root, const Handlers& handlers);
Command add_doctor(CLI::App& root, const Handlers& handlers);
Command add_networks(CLI::App& root, const Handlers& handlers);
Command add_schemes(CLI::App& root);
Command add_data(CLI::App& root);
Command add_version(CLI::App& root);
/// Takes its script from `root` when it runs: from every command that was added by then.
Command add_completion(CLI::App& root);

/// "syncopate 0.1.0".
std::string version_line();

/// What a user typed for an option (the last, where there are several), or nothing; nothing, too,
/// for one that the command does not have.
std::optional<std::string> given(const CLI::App& app, const std::string& option);

/// An option with a value that is read later, as text, through `given`.
CLI::Option* add_value(CLI::App& app, const std::string& name, const std::string& value,
                       const std::string& help);

/// A switch that is read later through `app.count`.
CLI::Option* add_switch(CLI::App& app, const std::string& name, const std::string& help);

/// Refuses what a command was given and does not know. Errors: ConfigError, with the nearest
/// option.
void check_nothing_left(const CLI::App& app);

/// Help texts: a blank line between groups, descriptions wrapped to the width of a page.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(30); }
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace syncopate::cli
