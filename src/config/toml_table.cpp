#include "config/toml_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "config/text.hpp"
#include "config/toml_nesting.hpp"

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

/// Describes an array, a table or a date that stands in the place of one value, and what to write.
std::string many_values(const toml::node& node) {
  if (node.is_array()) {
    return "an array; write one value, several as one text with commas: 'a,b'";
  }
  return node.is_table() ? "a table; write one value: key = VALUE"
                         : fmt::format("a {}; write a text in quotes", type_name(node));
}

constexpr std::size_t letters_of_a_line = 60;

/// The line of `text` with this number, which begins at 1.
std::string_view line_of(std::string_view text, toml::source_index number) {
  for (; number > 1 && !text.empty(); --number) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return trimmed(text.substr(0, text.find('\n')));
}

/// Describes a syntax error; the parser's own messages name its states and depend on its version.
std::string not_toml(std::string_view text, const toml::parse_error& error) {
  if (error.description().find("redefine") != std::string_view::npos) {
    return fmt::format("expected each key and table once, found '{}' again; remove one of them",
                       excerpt(line_of(text, error.source().begin.line), letters_of_a_line));
  }
  const auto line = std::max<toml::source_index>(1, error.source().begin.line);
  if (error.description().find("64 bits") != std::string_view::npos) {
    return fmt::format(
        "expected a number of 64 bits, a whole one from -9223372036854775808 to "
        "9223372036854775807, found '{}'; write one in that range",
        excerpt(line_of(text, line), letters_of_a_line));
  }
  return fmt::format("expected TOML (key = value, [table] or # comment), found '{}'; correct it",
                     excerpt(line_of(text, line), letters_of_a_line));
}

/// Errors: ConfigError if the text is too long, or nests too deep for the parser.
void check_size(std::string_view text, const std::string& source) {
  if (text.size() > TomlTable::most_bytes) {
    throw ConfigError(
        fmt::format("{}: expected at most {} bytes of TOML, found {}; name another file", source,
                    TomlTable::most_bytes, text.size()));
  }
  if (const auto where = too_deep(text)) {
    throw ConfigError(
        fmt::format("{}:{}:{}: expected at most {} dots in a key and {} open brackets, found more; "
                    "write fewer levels",
                    source, where->line, where->column, most_dots_in_a_key, most_open_brackets));
  }
}

}  // namespace

TomlTable TomlTable::read(const std::filesystem::path& path, std::string title) {
  return parse(read_file(path, most_bytes), path.string(), std::move(title));
}

TomlTable TomlTable::parse(std::string_view text, std::string source, std::string title) {
  check_size(text, source);
  try {
    TomlTable table;
    table.document_ = std::make_shared<const toml::table>(toml::parse(text, source));
    table.table_ = table.document_.get();
    table.file_ = std::move(source);
    table.title_ = std::move(title);
    return table;
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        fmt::format("{}: {}", location(source, error.source()), not_toml(text, error)));
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
    const OptionValue value = value_of(node);
    const bool has_no_value = std::holds_alternative<std::monostate>(value);
    if (has_no_value && std::ranges::find(known, key.str()) != known.end()) {
      refuse_at(node.source(),
                fmt::format("{}: expected a text in quotes, a number, true or false, found {}",
                            key.str(), many_values(node)));
    }
    bool taken = false;
    try {
      taken = set(key.str(), value);
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
            fmt::format("unknown key '{}'{}{}", excerpt(key.str(), letters_of_a_line),
                        title_.empty() ? "" : " in " + title_, suggestion(key.str(), known)));
}

void TomlTable::refuse_type(std::string_view key, const toml::node& found,
                            std::string_view expected) const {
  refuse_at(found.source(),
            fmt::format("{}: expected {}, found {}", key, expected, type_name(found)));
}

std::string to_toml(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::ostringstream quoted;
    // A text over several lines would end at three quotes in a row, so that its line ends are
    // escaped.
    const auto flags = text->find('\n') == std::string::npos
                           ? toml::toml_formatter::default_flags
                           : toml::format_flags::allow_unicode_strings;
    quoted << toml::toml_formatter(toml::value<std::string>(*text), flags);
    return quoted.str();
  }
  return to_text(value);
}

}  // namespace syncopate
