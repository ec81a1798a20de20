#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/launch/own_place.hpp"

namespace syncopate::cli {

// Options that say how the processes of a job find each other.

/// The default time limit for the processes of a job that is started by hand: long enough to start
/// the next one on another machine.
inline constexpr Duration patient_gather_limit = std::chrono::seconds(600);

void add_gather_limit(CLI::App& app, Duration usual);
/// Errors: ConfigError.
Duration gather_limit_of(const CLI::App& app, Duration usual);

/// `usual`: the default that the help text shows.
void add_secret(CLI::App& app, const std::string& usual);
/// The key in the file of `--secret`, or of the variable `key_file_variable`; empty without either.
/// Errors: DataError if the file cannot be read; ConfigError if other users can read or
/// change it, or if its key is too short or too long.
std::string secret_of(const CLI::App& app);

/// `--interface` and `--ports`.
void add_own_place(CLI::App& app);
/// Errors: ConfigError.
OwnPlace own_place_of(const CLI::App& app);

void add_index(CLI::App& app, const std::string& role);
/// Errors: ConfigError.
std::optional<std::uint32_t> index_of(const CLI::App& app);

/// The value of an option that must be given. Errors: ConfigError.
std::string required(const CLI::App& app, const std::string& option, const std::string& what);

}  // namespace syncopate::cli
