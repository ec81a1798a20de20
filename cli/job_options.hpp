#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace syncopate::cli {

// Options that say how the processes of a job find each other.

/// Where the processes of a job started by hand give up: long enough to walk to the next machine.
inline constexpr Duration patient_gather_limit = std::chrono::seconds(600);

void add_gather_limit(CLI::App& app, Duration usual);
/// Errors: ConfigError.
Duration gather_limit_of(const CLI::App& app, Duration usual);

void add_secret(CLI::App& app);
/// What the file of `--secret` holds, without the white space around it; empty where no file is
/// named.
/// Errors: DataError, when it cannot be read; ConfigError, when there is nothing in it.
std::string secret_of(const CLI::App& app);

void add_index(CLI::App& app, const std::string& role);
/// Errors: ConfigError.
std::optional<std::uint32_t> index_of(const CLI::App& app);

/// The value of an option that must be given. Errors: ConfigError.
std::string required(const CLI::App& app, const std::string& option, const std::string& what);

}  // namespace syncopate::cli
