#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "job/spec/config.hpp"

namespace syncopate {

/// Reads a configuration (TOML: one key for each field of `TrainConfig`) over `base`, whose fields
/// stay where the text has no key.
///
/// Errors: ConfigError, one line that begins with `source:line:column:`, for text that is not TOML,
/// an unknown key (with the nearest known one), a value of another type, out of range or not a
/// choice.
TrainConfig parse_config(std::string_view text, std::string_view source,
                         const TrainConfig& base = {});

/// Reads a configuration file. Errors: as `parse_config`; DataError, when it cannot be read.
TrainConfig read_config(const std::filesystem::path& path, const TrainConfig& base = {});

/// The TOML that `parse_config` reads back as an equal configuration.
std::string to_toml(const TrainConfig& config);

}  // namespace syncopate
