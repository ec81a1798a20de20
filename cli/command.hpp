#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// One command: its parser, and its action after parsing.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
  /// Refuses arguments that the parser did not consume, for a command whose message is more
  /// specific than that of `check_nothing_left`.
  std::function<void()> check_left = [] {};
};

// Each command has one file under commands/. Its function adds the command's options to `root`.
Command add_train(CLI::App& root, const Handlers& handlers);
/// `command`: the program to start, and its arguments.
Command add_run(CLI::App& root, const Handlers& handlers, std::vector<std::string> command);
Command add_coordinator(CLI::App& root, const Handlers& handlers);
/// `role`: worker or server.
Command add_joiner(CLI::App& root, const Handlers& handlers, Role role);
Command add_compare(CLI::App& root, const Handlers& handlers);
/// Reads run folders; starts no job.
Command add_report(CLI::App& root);
Command add_bench(CLI::App& root, const Handlers& handlers);
Command add_doctor(CLI::App& root, const Handlers& handlers);
Command add_profile(CLI::App& root, const Handlers& handlers);
Command add_networks(CLI::App& root, const Handlers& handlers);
Command add_schemes(CLI::App& root);
Command add_data(CLI::App& root);
Command add_key(CLI::App& root);
Command add_trace(CLI::App& root);
Command add_export(CLI::App& root);
Command add_import(CLI::App& root);
Command add_version(CLI::App& root);
/// Reads all commands and options from `root` when it runs.
Command add_completion(CLI::App& root);

/// Takes the names of the other commands from `root`.
Command add_help(CLI::App& root);

/// "syncopate 0.1.0, libtorch 1.13.0".
std::string version_line();

/// Returns the text that the user typed for an option (the last one of several); empty if the user
/// gave none or the command has no such option. Errors: ConfigError if the text is not UTF-8, the
/// system does not accept the path, or the name of a file or folder is empty.
std::optional<std::string> given(const CLI::App& app, const std::string& option);

/// Quotes a word for a shell if it needs quotes.
std::string quoted(const std::string& word);

/// Returns the command line of a parsed command, with all its options except `without`.
std::string words_of(const CLI::App& app, const std::string& without = "");

/// Adds an option with a value. `given` reads the value later, as text.
CLI::Option* add_value(CLI::App& app, const std::string& name, const std::string& value,
                       const std::string& help);

/// Adds a switch. `app.count` reads it later.
CLI::Option* add_switch(CLI::App& app, const std::string& name, const std::string& help);

/// Errors: ConfigError, which names the nearest command.
const CLI::App& command_named(const CLI::App& root, const std::string& name);

/// Refuses unknown arguments of a command. Errors: ConfigError, which names the nearest option.
void check_nothing_left(const CLI::App& app);

}  // namespace syncopate::cli
