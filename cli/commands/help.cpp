#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate::cli {

Command add_help(CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* command : root.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  CLI::App* app = root.add_subcommand("help", "Print the help of a command.");
  app->add_option(
      "command", [](const CLI::results_t&) { return true; },
      fmt::format("{}", fmt::join(names, ", ")));
  return {app, [app, &root] {
            const auto name = given(*app, "command");
            // `root.help()` is the help of the command that was parsed: this one.
            fmt::print(
                "{}",
                name ? command_named(root, *name).help(root.get_name(), CLI::AppFormatMode::All)
                     : root.get_formatter()->make_help(&root, root.get_name(),
                                                       CLI::AppFormatMode::Normal));
            return exit_status::success;
          }};
}

}  // namespace syncopate::cli
