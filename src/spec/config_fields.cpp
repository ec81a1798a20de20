#include "spec/config_fields.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "config/option.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/config.hpp"
#include "spec/field_groups.hpp"

namespace syncopate {
namespace {

using Config = TrainConfig;

/// In the order of help texts.
std::vector<Field> fields_of_every_job() {
  std::vector<Field> all;
  for (const auto fields : {model_and_data_fields, workers_fields, batch_fields, optimizer_fields,
                            schedule_and_start_fields, synchronization_fields, server_fields,
                            stopping_fields, outputs_fields, failures_fields}) {
    std::ranges::move(fields(), std::back_inserter(all));
  }
  return all;
}

Field field_of_scheme(const OptionSpec& option) {
  return {option, [option](const Config& config) { return config.scheme_options.get(option); },
          [option](Config& config, const OptionValue& value) {
            config.scheme_options.set(option, value);
          },
          /*of_scheme=*/true};
}

/// The options of schemes come after those of every job in their group.
std::vector<Field> all_fields() {
  std::vector<Field> fields = fields_of_every_job();
  for (const OptionSpec& option : scheme_options()) {
    const auto after = std::find_if(fields.rbegin(), fields.rend(), [&](const Field& field) {
      return field.group == option.group;
    });
    fields.insert(after.base(), field_of_scheme(option));
  }
  return fields;
}

/// A value of an option under its earlier name, and the option and value that replace it.
struct OldValue {
  std::string_view name;
  std::string_view value;
  std::string_view new_name;
  std::string_view new_value;
};

constexpr std::array old_values{OldValue{"through", "allreduce", "aggregate", "auto"},
                                OldValue{"through", "server", "aggregate", "server"}};

constexpr std::array<std::string_view, 1> old_names{"through"};

}  // namespace

std::span<const Field> train_fields() {
  static const std::vector<Field> fields = all_fields();
  return fields;
}

const Field* find_field(std::string_view name) {
  const auto fields = train_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

OptionValue get_field(const Field& field, const TrainConfig& config) {
  return field.get(config);
}

void set_field(const Field& field, TrainConfig& config, const OptionValue& value) {
  field.set(config, checked(field, value));
}

void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text) {
  field.set(config, value_in(field, text));
}

std::span<const std::string_view> old_option_names() {
  return old_names;
}

std::optional<std::string_view> set_old_option(TrainConfig& config, std::string_view name,
                                               std::string_view text) {
  if (std::ranges::find(old_names, name) == old_names.end()) {
    return std::nullopt;
  }
  for (const OldValue& old : old_values) {
    if (old.name == name && old.value == text) {
      log::warn("{} {} is now {} {}", name, text, old.new_name, old.new_value);
      set_field_from_text(*find_field(old.new_name), config, old.new_value);
      return old.new_name;
    }
  }
  throw ConfigError(fmt::format("expected one of allreduce, server, found '{}'", text));
}

}  // namespace syncopate
