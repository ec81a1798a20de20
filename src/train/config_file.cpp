#include "train/config_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "train/config_fields.hpp"
#include "train/names.hpp"

namespace syncopate {
namespace {

[[noreturn]] void refuse(std::string_view source, const toml::source_region& where,
                         std::string_view problem) {
  throw ConfigError(
      fmt::format("{}:{}:{}: {}", source, where.begin.line, where.begin.column, problem));
}

const Field* find_by_key(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  const Field* field = find_field(name);
  return field != nullptr && field->key() == key ? field : nullptr;
}

std::string unknown_key(std::string_view key) {
  std::vector<std::string> keys;
  for (const Field& field : train_fields()) {
    keys.push_back(field.key());
  }
  const std::vector<std::string_view> candidates(keys.begin(), keys.end());
  return fmt::format("unknown key '{}'{}", key, suggestion(key, candidates));
}

/// Empty for an array, a table or a date: no field holds one.
FieldValue value_of(const toml::node& node) {
  FieldValue value;
  node.visit([&](const auto& typed) {
    if constexpr (toml::is_boolean<decltype(typed)> || toml::is_integer<decltype(typed)> ||
                  toml::is_floating_point<decltype(typed)> || toml::is_string<decltype(typed)>) {
      value = typed.get();
    }
  });
  return value;
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string toml_value(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return quoted(*text);
  }
  return to_text(value);
}

}  // namespace

TrainConfig parse_config(std::string_view text, std::string_view source, const TrainConfig& base) {
  toml::table table;
  try {
    table = toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    refuse(source, error.source(), error.description());
  }
  TrainConfig config = base;
  for (const auto& [key, node] : table) {
    const Field* field = find_by_key(key.str());
    if (field == nullptr) {
      refuse(source, key.source(), unknown_key(key.str()));
    }
    try {
      set_field(*field, config, value_of(node));
    } catch (const ConfigError& error) {
      refuse(source, node.source(), fmt::format("{}: {}", key.str(), error.what()));
    }
  }
  return config;
}

TrainConfig read_config(const std::filesystem::path& path, const TrainConfig& base) {
  return parse_config(read_file(path), path.string(), base);
}

std::string to_toml(const TrainConfig& config) {
  std::string text;
  std::string_view group;
  for (const Field& field : train_fields()) {
    const FieldValue value = get_field(field, config);
    if (std::holds_alternative<std::monostate>(value)) {
      continue;
    }
    if (group != field.group) {
      text += fmt::format("{}# {}\n", group.empty() ? "" : "\n", field.group);
      group = field.group;
    }
    text += fmt::format("{} = {}\n", field.key(), toml_value(value));
  }
  return text;
}

}  // namespace syncopate
