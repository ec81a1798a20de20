#include "cli/bench/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::cli {
namespace {

constexpr double most = 4294967296.0;

std::optional<double> factor_of(std::string unit) {
  constexpr std::array<std::pair<std::string_view, double>, 8> units{{{"", 1},
                                                                      {"b", 1},
                                                                      {"kb", 1e3},
                                                                      {"mb", 1e6},
                                                                      {"gb", 1e9},
                                                                      {"kib", 1 << 10},
                                                                      {"mib", 1 << 20},
                                                                      {"gib", 1 << 30}}};
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char character) {
    return static_cast<char>(std::tolower(character));
  });
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const auto& known) { return known.first == unit; });
  return found == units.end() ? std::nullopt : std::optional(found->second);
}

/// A number and a unit, or nothing.
std::optional<double> bytes_in(std::string_view text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const auto factor = factor_of(std::string(rest, text.data() + text.size()));
  return error == std::errc() && factor ? std::optional(number * *factor) : std::nullopt;
}

}  // namespace

std::size_t read_size(std::string_view text) {
  const auto bytes = bytes_in(text);
  if (!bytes) {
    throw ConfigError(
        fmt::format("expected a size like 64, 1KB, 44.7MB or 100MiB, found '{}'", text));
  }
  // 44.7 · 10^6 has a rounding error in binary.
  const double whole = std::round(*bytes);
  if (!(whole >= 1 && whole <= most) || std::abs(*bytes - whole) > 1e-6 * whole) {
    throw ConfigError(fmt::format("expected whole bytes from 1 to 4 GiB, found '{}'", text));
  }
  return static_cast<std::size_t>(whole);
}

std::vector<std::size_t> read_sizes(const std::string& list, std::size_t unit) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : words_of_list(list)) {
    sizes.push_back(read_size(word));
    if (sizes.back() % unit != 0) {
      throw ConfigError(fmt::format("expected a multiple of {} bytes, found '{}'", unit, word));
    }
  }
  return sizes;
}

std::vector<std::string> words_of_list(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char character : list) {
    character == ',' ? words.emplace_back() : words.back() += character;
  }
  if (std::find(words.begin(), words.end(), "") != words.end()) {
    throw ConfigError(fmt::format("expected a list like A,B, found '{}'", list));
  }
  return words;
}

}  // namespace syncopate::cli
