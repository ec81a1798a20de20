#include "job/spec/config_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/suggestion.hpp"
#include "job/spec/config_fields.hpp"
#include "job/spec/old_options.hpp"
#include "scheme/scheme_spec.hpp"

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

/// False for an unknown key. Errors: as `set_field`.
bool set_by_key(TrainConfig& config, std::string_view key, const OptionValue& value) {
  if (const Field* field = find_by_key(key)) {
    set_field(*field, config, value);
    return true;
  }
  return set_old_option(config, key, to_text(value)).has_value();
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string toml_value(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return quoted(*text);
  }
  return to_text(value);
}

/// Whether a field is an option that the configuration's scheme does not have, and nobody has set.
bool is_of_another_scheme(const Field& field, const TrainConfig& config) {
  const std::vector<OptionSpec> of_schemes = scheme_options();
  return std::any_of(of_schemes.begin(), of_schemes.end(),
                     [&](const OptionSpec& option) { return option.name == field.name; }) &&
         find_option(scheme_named(config.scheme), field.name) == nullptr &&
         get_field(field, config) == field.initial;
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
    bool known = false;
    try {
      known = set_by_key(config, key.str(), value_of(node));
    } catch (const ConfigError& error) {
      refuse(source, node.source(), fmt::format("{}: {}", key.str(), error.what()));
    }
    if (!known) {
      refuse(source, key.source(), unknown_key(key.str()));
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
    const OptionValue value = get_field(field, config);
    if (std::holds_alternative<std::monostate>(value) || is_of_another_scheme(field, config)) {
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
