#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "spec/config.hpp"

namespace syncopate {

/// Reads a configuration (TOML: one key for each field of `TrainConfig`). Fields without a key keep
/// their values in `base`.
///
/// Errors: ConfigError, one line that begins with `source:line:column:`, if the text is not TOML, a
/// key is unknown (the line names the nearest known one), or a value is of another type, out of
/// range or not a choice.
TrainConfig parse_config(std::string_view text, std::string_view source,
                         const TrainConfig& base = {});

/// Reads a configuration file. Errors: as `parse_config`; DataError if it cannot be read.
TrainConfig read_config(const std::filesystem::path& path, const TrainConfig& base = {});

/// The TOML that `parse_config` reads back as an equal configuration.
std::string to_toml(const TrainConfig& config);

}  // namespace syncopate
