#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// Adds an option for every field of `TrainConfig`, and those that choose where it comes from.
void add_train_options(CLI::App& app);

/// The configuration that a parsed command line asks for, not yet resolved: options over the file of
/// `--config`, or over the run of `--resume`, over defaults.
///
/// Errors: ConfigError, for a value that an option does not take, options that contradict each other,
///         and, with `--resume`, options that would change what the run computes; DataError, for a
///         file that cannot be read.
TrainConfig config_of(const CLI::App& app);

/// Reads `--quiet`, `--verbose` and `--json`. Errors: ConfigError.
OutputOptions output_of(const CLI::App& app);

/// The cluster file that a user names: a path, or the name of one that was installed with the program
/// (`mixed`, `clusters/mixed.toml`). Errors: ConfigError.
std::filesystem::path find_cluster_file(const std::filesystem::path& named,
                                        const std::filesystem::path& installed);

}  // namespace syncopate::cli
