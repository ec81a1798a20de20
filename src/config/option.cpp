#include "config/option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <limits>
#include <type_traits>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

/// The most letters of a refused value that a message quotes.
constexpr std::size_t shown_letters = 80;
/// The longest path; 256 bytes of the system's limit are left for the name of a file below it.
constexpr std::size_t longest_path = PATH_MAX - 256;

std::string in_words(const Limits& limits, const std::string& most) {
  return fmt::format("{} {} {} {}", limits.above_least ? "above" : "from", limits.least,
                     limits.below_most ? "and below" : "to", most);
}

std::string in_words(const Limits& limits) {
  return in_words(limits, fmt::format("{}", limits.most));
}

/// The range of whole numbers: a `double` cannot hold 2^63 − 1, so it is written as an integer.
std::string whole_in_words(const Limits& limits) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return limits.most >= static_cast<double>(most) ? in_words(limits, fmt::format("{}", most))
                                                  : in_words(limits);
}

/// A real number that looks whole gets ".0", so that the message shows its type.
std::string text_of_found(const OptionValue& found) {
  const std::string text = to_text(found);
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return std::holds_alternative<double>(found) && looks_whole ? text + ".0" : text;
}

[[noreturn]] void refuse(std::string_view expected, const OptionValue& found,
                         std::string_view hint = "") {
  const std::string text = excerpt(text_of_found(found), shown_letters);
  const bool quoted = std::holds_alternative<std::string>(found);
  throw ConfigError(fmt::format("expected {}, found {}{}", expected,
                                quoted ? fmt::format("'{}'", text) : text, hint));
}

void check_limits(const Limits& limits, const std::string& expected, double number,
                  const OptionValue& value) {
  const bool enough = limits.above_least ? number > limits.least : number >= limits.least;
  const bool too_much = limits.below_most ? number >= limits.most : number > limits.most;
  if (!enough || too_much) {
    refuse(expected, value);
  }
}

OptionValue checked_flag(const OptionValue& value) {
  if (!std::holds_alternative<bool>(value)) {
    refuse("true or false", value);
  }
  return value;
}

OptionValue checked_whole(const OptionSpec& option, const OptionValue& value) {
  Limits limits = option.limits;
  if (option.type == OptionType::whole32) {
    limits.most = std::min<double>(limits.most, std::numeric_limits<std::uint32_t>::max());
  }
  const auto* number = std::get_if<std::int64_t>(&value);
  const std::string expected = "a whole number " + whole_in_words(limits);
  if (number == nullptr) {
    refuse(expected, value);
  }
  check_limits(limits, expected, static_cast<double>(*number), value);
  return value;
}

/// A text stands for a list of whole numbers.
OptionValue checked_counts(const OptionSpec& option, const OptionValue& value) {
  const auto* const list = std::get_if<std::string>(&value);
  if (list == nullptr) {
    return checked_whole(option, value);
  }
  std::vector<std::int64_t> counts;
  for (const std::string_view entry : entries_of(*list)) {
    const auto count = number_in<std::int64_t>(trimmed(entry));
    if (!count) {
      refuse("a whole number " + whole_in_words(option.limits) +
                 ", or one for each worker with commas between them",
             value);
    }
    counts.push_back(std::get<std::int64_t>(checked_whole(option, *count)));
  }
  return counts.size() == 1 ? OptionValue(counts.front())
                            : OptionValue(fmt::format("{}", fmt::join(counts, ",")));
}

OptionValue checked_real(const OptionSpec& option, const OptionValue& value) {
  const std::string expected = "a number " + in_words(option.limits);
  double number = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    refuse(expected, value);
  }
  check_limits(option.limits, expected, number, value);
  return number;
}

OptionValue checked_text(const OptionSpec& option, const OptionValue& value) {
  const auto* const name = std::get_if<std::string>(&value);
  if (name == nullptr) {
    refuse(option.type == OptionType::path ? "a path" : "a text", value);
  }
  option.type == OptionType::path ? check_path(*name) : check_text(*name);
  if (option.choices == nullptr || (option.also != nullptr && option.also(*name))) {
    return value;
  }
  const auto choices = option.choices();
  if (std::find(choices.begin(), choices.end(), *name) == choices.end()) {
    std::string all = fmt::format("{}", fmt::join(choices, ", "));
    if (option.also != nullptr) {
      all += fmt::format(", {}", option.value);
    }
    refuse("one of " + all, value, suggestion(*name, choices));
  }
  return value;
}

/// The value of the narrowest type that `text` can be read as.
OptionValue narrowest_value(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (const auto whole = number_in<std::int64_t>(text)) {
    return *whole;
  }
  if (const auto real = number_in<double>(text); real && std::isfinite(*real)) {
    return *real;
  }
  return std::string(text);
}

bool is_text(OptionType type) {
  return type == OptionType::text || type == OptionType::path || type == OptionType::period;
}

bool is_whole(OptionType type) {
  return type == OptionType::whole32 || type == OptionType::whole64 || type == OptionType::counts;
}

}  // namespace

std::string OptionSpec::key() const {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

OptionValue checked(const OptionSpec& option, const OptionValue& value) {
  if (option.may_be_open && value == OptionValue(std::string("auto"))) {
    return {};
  }
  switch (option.type) {
    case OptionType::flag: return checked_flag(value);
    case OptionType::whole32:
    case OptionType::whole64: return checked_whole(option, value);
    case OptionType::counts: return checked_counts(option, value);
    case OptionType::real: return checked_real(option, value);
    case OptionType::text:
    case OptionType::path: return checked_text(option, value);
    case OptionType::period: check_text(to_text(value)); break;  // read by its own parser
  }
  return value;
}

void check_text(std::string_view text) {
  if (!is_utf8(text)) {
    throw ConfigError(fmt::format("expected text in UTF-8, found other bytes: '{}'",
                                  excerpt(text, shown_letters)));
  }
  if (text.find('\0') != std::string_view::npos) {
    throw ConfigError(fmt::format("expected text without the character NUL, found '{}'",
                                  excerpt(text, shown_letters)));
  }
}

void check_path(std::string_view path) {
  check_text(path);
  if (path.size() > longest_path) {
    throw ConfigError(fmt::format("expected a path of at most {} bytes, found {} bytes: '{}'",
                                  longest_path, path.size(), excerpt(path, shown_letters)));
  }
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    const std::string& name = part.native();
    if (name.size() > NAME_MAX) {
      throw ConfigError(
          fmt::format("expected names of at most {} bytes in a path, found one of {} bytes: '{}'",
                      NAME_MAX, name.size(), excerpt(name, shown_letters)));
    }
  }
}

OptionValue value_in(const OptionSpec& option, std::string_view text) {
  if (is_text(option.type)) {
    return checked(option, std::string(text));
  }
  const OptionValue value = narrowest_value(text);
  // A refusal shows 1e6, or 2^64, as it was typed.
  const bool is_typed = is_whole(option.type) && std::holds_alternative<double>(value);
  return checked(option, is_typed ? OptionValue(std::string(text)) : value);
}

std::string to_text(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return "";
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

}  // namespace syncopate
