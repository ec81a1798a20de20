#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "config/option.hpp"
#include "job/spec/config.hpp"

namespace syncopate {

/// An option of `train`, and where a configuration holds it.
struct Field : OptionSpec {
  std::function<OptionValue(const TrainConfig&)> get;
  std::function<void(TrainConfig&, const OptionValue&)> set;  ///< of a value that was `checked`
};

/// All options, those of schemes included, in the order of help texts and configuration files.
std::span<const Field> train_fields();

/// The field of this name on the command line, or null.
const Field* find_field(std::string_view name);

OptionValue get_field(const Field& field, const TrainConfig& config);

/// Sets a field; "auto" leaves open what may be left open. Errors: as `checked`.
void set_field(const Field& field, TrainConfig& config, const OptionValue& value);

/// Sets a field from the text that the command line has for it. Errors: as `checked`.
void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text);

}  // namespace syncopate
