#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "job/spec/config.hpp"

namespace syncopate {

/// The names that options had before; they keep working.
std::span<const std::string_view> old_option_names();

/// Sets what an option under its old name stands for, and warns of the name to use. Returns that name; empty for a
/// name that was never one. Errors: ConfigError, for a value that it never had.
std::optional<std::string_view> set_old_option(TrainConfig& config, std::string_view name,
                                               std::string_view text);

}  // namespace syncopate
