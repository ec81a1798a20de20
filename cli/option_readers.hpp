#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/errors.hpp"

/// Reads the values of options that belong to no job.
namespace syncopate::cli {

/// Runs `read`; puts the name of the option before the text of an error.
template <class Read>
auto value_of(const std::string& option, const Read& read) {
  try {
    return read();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", option, error.what()));
  }
}

/// Errors: ConfigError if the text is not a whole number within these limits.
std::uint64_t number_of(const std::string& text, std::uint64_t least, std::uint64_t most);

/// Errors: ConfigError if the text is not a number of seconds above 0 and up to an hour.
double seconds_in(const std::string& text);

/// Returns `word` if it is one of the choices. Errors: ConfigError, which names the nearest choice.
std::string choice_of(const std::string& word, std::span<const std::string_view> choices);

}  // namespace syncopate::cli
