#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/standard_streams.hpp"
#include "cli/command.hpp"
#include "cli/handlers.hpp"
#include "cli/help_formatter.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* examples = R"(Examples:
  syncopate train --scheme ssgd --network lenet5 --data fashion-mnist --workers 4
  syncopate train --cluster clusters/mixed.toml --target-accuracy 0.85
  syncopate COMMAND --help)";

void set_up(CLI::App& root) {
  root.name("syncopate");
  root.formatter(std::make_shared<HelpFormatter>());
  root.get_formatter()->label("SUBCOMMAND", "COMMAND");
  root.get_formatter()->label("SUBCOMMANDS", "COMMAND");
  root.set_help_flag("-h,--help", "print this help");
  root.set_version_flag("--version", version_line, "print the version");
  root.footer(examples);
  // `check_nothing_left` refuses unknown arguments, and suggests the nearest option.
  root.allow_extras();
  root.require_subcommand(0, 1);
}

/// Replaces messages of CLI11, which name internal types and depend on its version.
std::string in_our_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string named = text.substr(0, text.find_first_of(": "));
  const std::string option = named.starts_with("-") ? named : "--" + named;
  if (text.find("flag override") != std::string::npos) {
    return option + " takes no value";
  }
  const bool lacks_value =
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch);
  return lacks_value
             ? option + " needs a value"
             : fmt::format("expected COMMAND and its options, found '{}'; see --help", named);
}

int run_parsed(const CLI::App& root, const std::vector<Command>& commands) {
  check_nothing_left(root);
  for (const Command& command : commands) {
    if (command.app->parsed()) {
      command.check_left();
      check_nothing_left(*command.app);
      return command.run();
    }
  }
  fmt::print("{}", root.help());
  return exit_status::success;
}

/// Returns the index of the `--` that ends the options of `syncopate run`, or `argc` if there is
/// none. The words after it belong to the program that the command starts.
int end_of_options(int argc, char** argv) {
  int end = 1;
  while (end < argc && std::strcmp(argv[end], "--") != 0) {
    ++end;
  }
  return argc > 1 && std::strcmp(argv[1], "run") == 0 ? end : argc;
}

int parse_and_run(int argc, char** argv, const Handlers& handlers) {
  const int end = end_of_options(argc, argv);
  std::vector<std::string> program(argv + std::min(end + 1, argc), argv + argc);
  CLI::App root("Data-parallel deep learning on machines of unequal speed.");
  set_up(root);
  std::vector<Command> commands{add_train(root, handlers),
                                add_run(root, handlers, std::move(program)),
                                add_coordinator(root, handlers),
                                add_joiner(root, handlers, Role::worker),
                                add_joiner(root, handlers, Role::server),
                                add_compare(root, handlers),
                                add_report(root),
                                add_bench(root, handlers),
                                add_doctor(root, handlers),
                                add_profile(root, handlers),
                                add_networks(root, handlers),
                                add_schemes(root),
                                add_data(root),
                                add_key(root),
                                add_trace(root),
                                add_export(root),
                                add_import(root),
                                add_version(root),
                                add_completion(root)};
  commands.push_back(add_help(root));
  for (const Command& command : commands) {
    command.app->group("Commands");
  }
  try {
    root.parse(end, argv);
  } catch (const CLI::Success& wanted) {
    return root.exit(wanted);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(in_our_words(error));
  }
  return run_parsed(root, commands);
}

/// Also empty if the launcher's variables contradict each other: a command that needs the launch
/// refuses them itself.
std::optional<Launch> launch_if_any() {
  try {
    return own_launch();
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

/// Returns the exit status if the reader of standard output has closed it, as `head` does. Errors:
/// DataError if the write failed for another reason.
int output_failed(std::error_code code) {
  if (code == std::errc::broken_pipe) {
    return exit_status::failure;
  }
  throw DataError(fmt::format("cannot write standard output: {}", code.message()));
}

/// A command that prints more than the stream's buffer holds writes to standard output while it
/// runs, so a write may fail here.
int parse_and_print(int argc, char** argv, const Handlers& handlers) {
  try {
    return parse_and_run(argc, argv, handlers);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) {
      throw;
    }
    return output_failed(error.code());
  }
}

}  // namespace

int run_cli(int argc, char** argv, const Handlers& handlers) {
  open_standard_streams();
  // Beyond the limit on the size of files (ulimit -f) a write then fails with EFBIG, as an error
  // that the process reports. Processes that this one starts inherit it. A program that joins a job
  // from its own main keeps its signals.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto run = [&] {
    const int status = parse_and_print(argc, argv, handlers);
    return std::fflush(stdout) == 0 ? status : output_failed({errno, std::generic_category()});
  };
  const auto launch = launch_if_any();
  return launch ? guarded_rank(*launch, run) : guarded(run);
}

}  // namespace syncopate::cli
