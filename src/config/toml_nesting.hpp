#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace syncopate {

/// A position in a text; both numbers begin at 1.
struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// Bounds of nesting in a TOML text. A configuration of Syncopate has at most two levels.
inline constexpr std::size_t most_dots_in_a_key = 16;
inline constexpr std::size_t most_open_brackets = 16;

/// The position at which `text` nests deeper than these bounds: a key with too many dots, or too
/// many brackets and braces that are open at a time. Empty if there is none.
///
/// A parser of TOML calls itself for each level, and again when it frees the tables, so a deep text
/// would exhaust the stack. This function looks only at characters: it knows strings and comments,
/// and leaves every other mistake to the parser, which stops at the first.
std::optional<TextPosition> too_deep(std::string_view text);

}  // namespace syncopate
