#include "spec/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/toml_table.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/config_fields.hpp"

namespace syncopate {
namespace {

const Field* find_by_key(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  const Field* field = find_field(name);
  return field != nullptr && field->key() == key ? field : nullptr;
}

/// Earlier versions wrote `workers = 0` if the number was not given; their files stay readable.
bool leaves_workers_open(std::string_view key, const OptionValue& value) {
  return key == "workers" && value == OptionValue(std::int64_t{0});
}

/// False for an unknown key. Errors: as `set_field`.
bool set_by_key(TrainConfig& config, std::string_view key, const OptionValue& value) {
  if (leaves_workers_open(key, value)) {
    config.workers = 0;
    return true;
  }
  if (const Field* field = find_by_key(key)) {
    set_field(*field, config, value);
    return true;
  }
  return set_old_option(config, key, to_text(value)).has_value();
}

/// True if a field is an option of another scheme, and has its initial value.
bool is_of_another_scheme(const Field& field, const TrainConfig& config) {
  return field.of_scheme && find_option(scheme_named(config.scheme), field.name) == nullptr &&
         get_field(field, config) == field.initial;
}

/// True if the field is a `split` that was not given, beside `split_by_class`, which it would
/// contradict.
bool is_replaced(const Field& field, const TrainConfig& config) {
  return field.name == "split" && config.split_by_class && config.split == Split{};
}

/// Errors: ConfigError if the file has two splits.
void check_split_of_file(const TrainConfig& config, std::string_view source) {
  try {
    expect_one_split(config);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace

TrainConfig parse_config(std::string_view text, std::string_view source, const TrainConfig& base) {
  std::vector<std::string> keys;
  std::ranges::transform(train_fields(), std::back_inserter(keys), &Field::key);
  const std::vector<std::string_view> known(keys.begin(), keys.end());
  TrainConfig config = base;
  bool has_split = false;
  const auto set = [&](std::string_view key, const OptionValue& value) {
    has_split = has_split || key == "split";
    return set_by_key(config, key, value);
  };
  TomlTable::parse(text, std::string(source), "").for_each(set, known);
  if (has_split) {
    check_split_of_file(config, source);
  }
  return config;
}

TrainConfig read_config(const std::filesystem::path& path, const TrainConfig& base) {
  return parse_config(read_file(path, TomlTable::most_bytes), path.string(), base);
}

std::string to_toml(const TrainConfig& config) {
  std::string text;
  std::string_view group;
  for (const Field& field : train_fields()) {
    const OptionValue value = get_field(field, config);
    if (std::holds_alternative<std::monostate>(value) || is_of_another_scheme(field, config) ||
        is_replaced(field, config)) {
      continue;
    }
    if (group != field.group) {
      text += fmt::format("{}# {}\n", group.empty() ? "" : "\n", field.group);
      group = field.group;
    }
    text += fmt::format("{} = {}\n", field.key(), to_toml(value));
  }
  return text;
}

}  // namespace syncopate
