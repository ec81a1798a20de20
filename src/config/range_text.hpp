#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "config/text.hpp"

namespace syncopate {

/// The ends of "FIRST-LAST", or of one number, which is both. Empty for another text, and for ends
/// in the wrong order.
template <class Number>
std::optional<std::pair<Number, Number>> range_in(const std::string& text) {
  const auto dash = std::min(text.find('-'), text.size());
  const auto first = number_in<Number>(text.substr(0, dash));
  const auto last = dash == text.size() ? first : number_in<Number>(text.substr(dash + 1));
  return first && last && *first <= *last ? std::optional(std::pair(*first, *last)) : std::nullopt;
}

}  // namespace syncopate
