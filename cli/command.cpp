#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "config/option.hpp"
#include "config/text.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t letters_of_a_word = 80;

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return suggestion(word, candidates);
}

struct Synonym {
  std::string_view word;
  std::string_view option;
};

/// Names of options in other tools of the field, and the option that each one means here.
constexpr Synonym synonyms[] = {{"--lr", "--learning-rate"},
                                {"--rate", "--learning-rate"},
                                {"--batch", "--batch-size"},
                                {"--bs", "--batch-size"},
                                {"--wd", "--weight-decay"},
                                {"--model", "--network"},
                                {"--arch", "--network"},
                                {"--dataset", "--data"},
                                {"--optim", "--optimizer"},
                                {"--algorithm", "--scheme"},
                                {"--np", "--workers"},
                                {"--nproc", "--workers"},
                                {"--nproc-per-node", "--workers"},
                                {"--num-workers", "--workers"},
                                {"--gpus", "--workers"},
                                {"--iterations", "--max-steps"},
                                {"--steps", "--max-steps"},
                                {"--output", "--run-dir"},
                                {"-v", "--verbose"},
                                {"-V", "--version"}};

/// Returns "; did you mean …?" for an unknown option, from the table of synonyms or by spelling.
std::string meant_option(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> known = option_names(app);
  const auto* const synonym = std::ranges::find(synonyms, name, &Synonym::word);
  if (synonym != std::end(synonyms) && std::ranges::find(known, synonym->option) != known.end()) {
    return fmt::format("; did you mean '{}'?", synonym->option);
  }
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return nearest(lower, known);
}

ConfigError unknown_command(const CLI::App& root, const std::string& name) {
  return ConfigError(fmt::format("unknown command '{}'{}", excerpt(name, letters_of_a_word),
                                 nearest(name, command_names(root))));
}

/// Errors: ConfigError. An empty name usually comes from an unset variable of the user's shell.
void check_name(const std::string& option, const std::string& kind, const std::string& name) {
  if (name.empty() && option.starts_with("--")) {
    throw ConfigError(
        fmt::format("expected a {}, found an empty name; name one, or leave out {}", kind, option));
  }
  check_path(name);
}

}  // namespace

std::optional<std::string> given(const CLI::App& app, const std::string& option) {
  const CLI::Option* known = app.get_option_no_throw(option);
  const auto& results = known == nullptr ? CLI::results_t{} : known->results();
  if (results.empty()) {
    return std::nullopt;
  }
  const std::string value = known->get_type_name();
  try {
    if (value == "FILE" || value == "FOLDER") {
      check_name(option, value == "FILE" ? "file" : "folder", results.back());
    } else {
      check_text(results.back());
    }
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", option, error.what()));
  }
  return results.back();
}

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" \t\n'\"\\$&|;<>()*?[]#~`!") == std::string::npos;
  return plain && !word.empty() ? word : fmt::format("'{}'", word);
}

std::string words_of(const CLI::App& app, const std::string& without) {
  std::string words = "syncopate " + app.get_name();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) {
      for (const std::string& word : option->results()) {
        words += " " + quoted(word);
      }
    } else if (const std::string& name = option->get_lnames().front();
               option->count() > 0 && name != without) {
      const std::string& value = option->results().back();
      words += " --" + name + (value == "true" ? "" : "=" + quoted(value));
    }
  }
  return words;
}

CLI::Option* add_value(CLI::App& app, const std::string& name, const std::string& value,
                       const std::string& help) {
  const auto keep_text = [](const CLI::results_t&) { return true; };
  return app.add_option("--" + name, keep_text, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_switch(CLI::App& app, const std::string& name, const std::string& help) {
  return app.add_flag("--" + name, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->disable_flag_override();
}

const CLI::App& command_named(const CLI::App& root, const std::string& name) {
  const auto commands = root.get_subcommands({});
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  if (found == commands.end()) {
    throw unknown_command(root, name);
  }
  return **found;
}

void check_nothing_left(const CLI::App& app) {
  const auto left = app.remaining();
  if (left.empty()) {
    return;
  }
  const std::string& first = left.front();
  if (first.starts_with('-')) {
    const std::string name = first.substr(0, first.find('='));
    throw ConfigError(fmt::format("unknown option {}{}", excerpt(name, letters_of_a_word),
                                  meant_option(app, name)));
  }
  if (command_names(app).empty()) {
    throw ConfigError(fmt::format("unexpected argument '{}'", excerpt(first, letters_of_a_word)));
  }
  throw unknown_command(app, first);
}

}  // namespace syncopate::cli
