#include "config/toml_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

std::string type_name(const toml::node& node) {
  std::ostringstream name;
  name << node.type();
  return name.str();
}

/// Insertions, deletions and replacements that turn one word into the other (Levenshtein 1966).
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view word, std::initializer_list<std::string_view> choices) {
  return *std::ranges::min_element(
      choices, {}, [&](std::string_view choice) { return edit_distance(word, choice); });
}

std::string in_words(Interval allowed) {
  return fmt::format("from {:g} to {:g}", allowed.least, allowed.most);
}

/// False for NaN, too.
bool contains(Interval allowed, double number) {
  return number >= allowed.least && number <= allowed.most;
}

std::string location(const std::string& file, const toml::source_region& where) {
  return fmt::format("{}:{}:{}", file, std::max<toml::source_index>(1, where.begin.line),
                     std::max<toml::source_index>(1, where.begin.column));
}

}  // namespace

TomlTable::TomlTable(std::string file, const toml::table& table, std::string what)
    : file_(std::move(file)), table_(&table), what_(std::move(what)) {}

void TomlTable::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(keys, key.str()) == keys.end()) {
      throw ConfigError(fmt::format("{}: unknown key '{}' in {}; did you mean '{}'?",
                                    location(file_, key.source()), key.str(), what_,
                                    nearest(key.str(), keys)));
    }
  }
}

std::optional<std::string> TomlTable::text(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_string()) {
    refuse_type(key, *node, "a string");
  }
  return node->value<std::string>();
}

std::optional<double> TomlTable::number(std::string_view key, Interval allowed) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_number()) {
    refuse_type(key, *node, "a number");
  }
  const double number = *node->value<double>();
  if (!contains(allowed, number)) {
    refuse_at(*node,
              fmt::format("{}: expected a number {}, found {}", key, in_words(allowed), number));
  }
  return number;
}

std::optional<std::uint32_t> TomlTable::whole(std::string_view key, Interval allowed) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_integer()) {
    refuse_type(key, *node, "a whole number");
  }
  const auto number = *node->value<std::int64_t>();
  if (!contains(allowed, static_cast<double>(number))) {
    refuse_at(*node, fmt::format("{}: expected a whole number from {:.0f} to {:.0f}, found {}", key,
                                 allowed.least, allowed.most, number));
  }
  return static_cast<std::uint32_t>(number);
}

double TomlTable::needed_number(std::string_view key, Interval allowed) const {
  const auto found = number(key, allowed);
  if (!found) {
    refuse(fmt::format("expected {} in {}, found none", key, what_));
  }
  return *found;
}

std::optional<TomlTable> TomlTable::table(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_table()) {
    refuse_type(key, *node, fmt::format("a table, [{}]", key));
  }
  return TomlTable(file_, *node->as_table(), fmt::format("[{}]", key));
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> found;
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    return found;
  }
  const auto expected = fmt::format("tables, [[{}]]", key);
  if (!node->is_array()) {
    refuse_type(key, *node, expected);
  }
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_table()) {
      refuse_type(key, element, expected);
    }
    found.emplace_back(file_, *element.as_table(), fmt::format("[[{}]]", key));
  }
  return found;
}

void TomlTable::refuse(std::string_view message) const {
  refuse_at(*table_, message);
}

void TomlTable::refuse_at(const toml::node& node, std::string_view message) const {
  throw ConfigError(fmt::format("{}: {}", location(file_, node.source()), message));
}

void TomlTable::refuse_type(std::string_view key, const toml::node& found,
                            std::string_view expected) const {
  refuse_at(found, fmt::format("{}: expected {}, found {}", key, expected, type_name(found)));
}

toml::table parse_toml(const std::filesystem::path& path) {
  try {
    return toml::parse(read_file(path), path.string());
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        fmt::format("{}: {}", location(path.string(), error.source()), error.description()));
  }
}

}  // namespace syncopate
