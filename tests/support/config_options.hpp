#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "spec/config_fields.hpp"

namespace syncopate {

/// Sets an option of `train` as the command line does: set(config, "slack", 0).
template <class Value>
void set(TrainConfig& config, std::string_view option, const Value& value) {
  set_field_from_text(*find_field(option), config, fmt::format("{}", value));
}

/// Returns an option's value as the command line writes it; empty if the option is not set.
inline std::string value_of(const TrainConfig& config, std::string_view option) {
  return to_text(get_field(*find_field(option), config));
}

}  // namespace syncopate
