#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "config/option.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// An option of `train`, and how a configuration holds its value.
struct Field : OptionSpec {
  std::function<OptionValue(const TrainConfig&)> get;
  std::function<void(TrainConfig&, const OptionValue&)> set;  ///< takes a value of `checked`
  bool of_scheme = false;                                     ///< a scheme declares this option
};

/// All options, including those of schemes, in the order of help texts and configuration files.
std::span<const Field> train_fields();

/// The field of this name on the command line, or null.
const Field* find_field(std::string_view name);

OptionValue get_field(const Field& field, const TrainConfig& config);

/// Sets a field. "auto" leaves a field unset if it may be unset. Errors: those of `checked`.
void set_field(const Field& field, TrainConfig& config, const OptionValue& value);

/// Sets a field from its text on the command line. Errors: those of `checked`.
void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text);

/// Earlier names of options, which still work.
std::span<const std::string_view> old_option_names();

/// Sets the option that an earlier name stands for, and logs a warning with its present name.
/// Returns the present name; empty if the name never existed. Errors: ConfigError if the earlier
/// option did not have this value.
std::optional<std::string_view> set_old_option(TrainConfig& config, std::string_view name,
                                               std::string_view text);

}  // namespace syncopate
