#include "config/toml_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

std::string type_name(const toml::node& node) {
  std::ostringstream name;
  name << node.type();
  return name.str();
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

/// Empty for an array, a table or a date.
OptionValue value_of(const toml::node& node) {
  OptionValue value;
  node.visit([&](const auto& typed) {
    if constexpr (toml::is_boolean<decltype(typed)> || toml::is_integer<decltype(typed)> ||
                  toml::is_floating_point<decltype(typed)> || toml::is_string<decltype(typed)>) {
      value = typed.get();
    }
  });
  return value;
}

}  // namespace

TomlTable TomlTable::read(const std::filesystem::path& path, std::string title) {
  return parse(read_file(path), path.string(), std::move(title));
}

TomlTable TomlTable::parse(std::string_view text, std::string source, std::string title) {
  try {
    TomlTable table;
    table.document_ = std::make_shared<const toml::table>(toml::parse(text, source));
    table.table_ = table.document_.get();
    table.file_ = std::move(source);
    table.title_ = std::move(title);
    return table;
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}: {}", location(source, error.source()), error.description()));
  }
}

TomlTable::TomlTable(const TomlTable& parent, const toml::table& table, std::string title)
    : file_(parent.file_), document_(parent.document_), table_(&table), title_(std::move(title)) {}

void TomlTable::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(keys, key.str()) == keys.end()) {
      refuse_key(key, keys);
    }
  }
}

void TomlTable::for_each(const SetValue& set, std::span<const std::string_view> known) const {
  for (const auto& [key, node] : *table_) {
    bool taken = false;
    try {
      taken = set(key.str(), value_of(node));
    } catch (const ConfigError& error) {
      refuse_at(node.source(), fmt::format("{}: {}", key.str(), error.what()));
    }
    if (!taken) {
      refuse_key(key, known);
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
    refuse_at(node->source(),
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
    refuse_at(node->source(),
              fmt::format("{}: expected a whole number from {:.0f} to {:.0f}, found {}", key,
                          allowed.least, allowed.most, number));
  }
  return static_cast<std::uint32_t>(number);
}

double TomlTable::needed_number(std::string_view key, Interval allowed) const {
  const auto found = number(key, allowed);
  if (!found) {
    refuse(fmt::format("expected {} in {}, found none", key, title_));
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
  return TomlTable(*this, *node->as_table(), fmt::format("[{}]", key));
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
    found.push_back(TomlTable(*this, *element.as_table(), fmt::format("[[{}]]", key)));
  }
  return found;
}

void TomlTable::refuse(std::string_view message) const {
  refuse_at(table_->source(), message);
}

void TomlTable::refuse_at(const toml::source_region& where, std::string_view message) const {
  throw ConfigError(fmt::format("{}: {}", location(file_, where), message));
}

void TomlTable::refuse_key(const toml::key& key, std::span<const std::string_view> known) const {
  refuse_at(key.source(),
            fmt::format("unknown key '{}'{}{}", key.str(), title_.empty() ? "" : " in " + title_,
                        suggestion(key.str(), known)));
}

void TomlTable::refuse_type(std::string_view key, const toml::node& found,
                            std::string_view expected) const {
  refuse_at(found.source(),
            fmt::format("{}: expected {}, found {}", key, expected, type_name(found)));
}

std::string to_toml(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::ostringstream quoted;
    quoted << toml::value<std::string>(*text);
    return quoted.str();
  }
  return to_text(value);
}

}  // namespace syncopate
