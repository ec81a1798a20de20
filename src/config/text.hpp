#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// Reading of option values from text, and suggestions for misspelt names.
namespace syncopate {

/// The number at the beginning of `text`, and the text after it. Empty if `text` does not begin
/// with a number.
template <class Number>
struct LeadingNumber {
  Number number{};
  std::string_view rest;
};
template <class Number>
std::optional<LeadingNumber<Number>> leading_number(std::string_view text) {
  LeadingNumber<Number> found;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, found.number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  found.rest = {end, static_cast<std::size_t>(last - end)};
  return found;
}

/// The number that `text` as a whole is; empty for any other text. A floating number may be
/// infinite or NaN.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  const auto found = leading_number<Number>(text);
  return found && found->rest.empty() ? std::optional(found->number) : std::nullopt;
}

/// `text` without the spaces around it.
std::string_view trimmed(std::string_view text);

/// The entries of a list with commas between them: "a,b" has two, "" has one, which is empty.
std::vector<std::string_view> entries_of(std::string_view list);

/// "a, b or c". `names` holds at least one name.
std::string alternatives(std::span<const std::string_view> names);

/// The candidate nearest to `word`; empty if none is near. Near means an edit distance of at most a
/// third of the length of `word`, or that one of the two is a prefix of the other.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean 'ssgd'?", or nothing when no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace syncopate
