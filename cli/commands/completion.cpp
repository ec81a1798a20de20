#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.hpp"
#include "cli/bench/bench_command.hpp"
#include "cli/command.hpp"
#include "collective/reducer.hpp"
#include "job/launch/exit_status.hpp"
#include "spec/config_fields.hpp"

namespace syncopate::cli {
namespace {

using Names = std::vector<std::string_view>;

/// The values of options that are no field of a job, or that allow fewer values than the field of
/// the same name.
Names own_values(const CLI::App& command, const std::string& option) {
  const std::string where = command.get_name() + " " + option;
  if (where == "bench transport") {
    return {bench_transports.begin(), bench_transports.end()};
  }
  if (where == "bench aggregate") {
    return own_reducer_names();
  }
  if (where == "compare schemes") {
    return find_field("scheme")->choices();
  }
  return where == "compare grid-in" ? Names{"virtual", "real"} : Names{};
}

Names values_of_field(const std::string& name) {
  const Field* field = find_field(name);
  return field != nullptr && field->choices != nullptr ? field->choices() : Names{};
}

/// True if an option takes paths as well as names. `bench` trains only built-in networks.
bool takes_paths(const CLI::App& command, const std::string& option) {
  const Field* field = find_field(option);
  return field != nullptr && field->also_paths && command.get_name() != "bench";
}

/// The text after "how=" in the script: `compgen`'s arguments for the values of an option.
std::string values_of(const CLI::App& command, const CLI::Option& option) {
  const std::string& name = option.get_lnames().front();
  const Names own = own_values(command, name);
  const Names values = own.empty() ? values_of_field(name) : own;
  if (!values.empty()) {
    return fmt::format("(-W '{}'{})", fmt::join(values, " "),
                       takes_paths(command, name) ? " -f" : "");
  }
  if (option.get_type_name() == "FILE") {
    return "(-f)";
  }
  return option.get_type_name() == "FOLDER" ? "(-d)" : "()";
}

std::vector<const CLI::Option*> named_options(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_lnames().empty(); });
}

bool is_folder(const CLI::Option& option) {
  return option.get_positional() && option.get_type_name() == "FOLDER";
}

/// The values of a command's positional argument: its help text lists exactly these, unless the
/// argument is a folder.
std::string positionals_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    words += option->get_positional() && !is_folder(*option) ? option->get_description() : "";
  }
  std::erase(words, ',');
  return words;
}

/// The branches of the script's `case` for one command: the values of each option, then the other
/// words that the command takes.
std::string branches_of(const CLI::App& command) {
  std::string branches;
  std::string words = positionals_of(command);
  for (const CLI::Option* option : named_options(command)) {
    const std::string& name = option->get_lnames().front();
    words += fmt::format(" --{}", name);
    if (option->get_type_size() != 0) {
      branches += fmt::format("    {}:--{}) how={} ;;\n", command.get_name(), name,
                              values_of(command, *option));
    }
  }
  const auto options = command.get_options();
  const bool folders = std::any_of(options.begin(), options.end(),
                                   [](const CLI::Option* option) { return is_folder(*option); });
  return branches + fmt::format("    {}:*) how=({}-W '{}') ;;\n", command.get_name(),
                                folders ? "-d " : "", words);
}

// Readline also splits words at '=', so `--scheme=ss` arrives as three words; it does not split a
// list at its commas.
constexpr std::string_view frame =
    R"(# bash completion for syncopate, made by: syncopate completion bash

_syncopate() {{
  local word=$2 before=$3 command=${{COMP_WORDS[1]}} how=() list=""
  if [[ $word == "=" ]]; then
    word=""
  elif [[ $before == "=" ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  if ((COMP_CWORD == 1)); then
    command="" before=""
  fi
  case "$command:$before" in
    :*) how=(-W '{commands} --help --version') ;;
{branches}  esac
  COMPREPLY=()
  if [[ ${{how[0]}} == -W && $word == *,* ]]; then
    list=${{word%,*}},
    word=${{word##*,}}
  fi
  if ((${{#how[@]}} > 0)); then
    mapfile -t COMPREPLY < <(compgen -P "$list" "${{how[@]}}" -- "$word")
  fi
}}
complete -o filenames -F _syncopate syncopate
)";

std::string script_of(const CLI::App& root) {
  std::vector<std::string> commands;
  std::string branches;
  for (const CLI::App* command : root.get_subcommands({})) {
    commands.push_back(command->get_name());
    branches += branches_of(*command);
  }
  return fmt::format(frame, fmt::arg("commands", fmt::join(commands, " ")),
                     fmt::arg("branches", branches));
}

}  // namespace

Command add_completion(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("completion", "Print a script that completes commands in a shell.");
  app->add_option(
      "shell", [](const CLI::results_t&) { return true; }, "bash");
  app->footer("Example:\n  eval \"$(syncopate completion bash)\"");
  return {
      app, [app, &root] {
        const auto shell = given(*app, "shell");
        if (shell != "bash") {
          throw ConfigError(fmt::format(
              "completion: expected the name of a shell, bash; found '{}'", shell.value_or("")));
        }
        fmt::print("{}", script_of(root));
        return exit_status::success;
      }};
}

}  // namespace syncopate::cli
