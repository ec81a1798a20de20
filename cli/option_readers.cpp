#include "cli/option_readers.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "config/text.hpp"

namespace syncopate::cli {

std::uint64_t number_of(const std::string& text, std::uint64_t least, std::uint64_t most) {
  const auto number = number_in<std::uint64_t>(text);
  if (!number || *number < least || *number > most) {
    throw ConfigError(
        fmt::format("expected a whole number from {} to {}, found '{}'", least, most, text));
  }
  return *number;
}

double seconds_in(const std::string& text) {
  constexpr double most = 3600;
  const auto seconds = number_in<double>(text);
  if (!seconds || !(*seconds > 0 && *seconds <= most)) {
    throw ConfigError(fmt::format("expected seconds above 0 and up to 3600, found '{}'", text));
  }
  return *seconds;
}

std::string choice_of(const std::string& word, std::span<const std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
    throw ConfigError(fmt::format("expected one of {}, found '{}'{}", fmt::join(choices, ", "),
                                  word, suggestion(word, {choices.begin(), choices.end()})));
  }
  return word;
}

}  // namespace syncopate::cli
