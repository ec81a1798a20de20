#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/handlers.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

/// Adds an option for every field of `TrainConfig`, and those that choose where it comes from.
void add_train_options(CLI::App& app);

/// Adds an option for every field of `TrainConfig`, for a process that joins a job: those that are
/// a matter of its own machine, and those by which it says what it expects the job to be.
void add_expectations(CLI::App& app);

/// The statistics of BatchNorm that a comparison evaluates with where nobody says otherwise:
/// running ones lag behind, more so with some schemes, and would be compared instead of schemes.
inline constexpr BatchNormStatistics comparisons_batch_norm = BatchNormStatistics::recomputed;

/// Adds an option for every field that the jobs of a comparison have in common, and `--config`.
void add_common_options(CLI::App& app);

/// Adds an option for every field that decides which samples a worker trains on in which order, and
/// `--config`. `common_config_of` reads them.
void add_data_options(CLI::App& app);

/// The configuration that these ask for, not resolved but for the place of the cluster file.
/// Errors: ConfigError; DataError, for a file that cannot be read.
TrainConfig common_config_of(const CLI::App& app);

/// What a user typed for these, each checked by itself. Errors: ConfigError.
GivenOptions given_options(const CLI::App& app);

/// The configuration that a parsed command line asks for, not yet resolved: options over the file
/// of `--config`, or over the run of `--resume`, over defaults.
///
/// Errors: ConfigError, for a value that an option does not take, options that contradict each
///         other, and, with `--resume`, options that would change what the run computes; DataError,
///         for a file that cannot be read.
TrainConfig config_of(const CLI::App& app);

/// Adds `--quiet` and `--verbose`, and `--json` for a command that shows a job.
enum class Says { lines, events };
void add_output_options(CLI::App& app, Says what);

/// Reads `--quiet`, `--verbose` and `--json`. Errors: ConfigError.
OutputOptions output_of(const CLI::App& app);

/// The job that a parsed command line asks for, resolved. Errors: as `config_of`, and ConfigError
/// for a job that contradicts itself.
TrainCommand job_of(const CLI::App& app, const Handlers& handlers);

/// The cluster file that a user names: a path, or the name of one that was installed with the
/// program (`mixed`, `clusters/mixed.toml`). Errors: ConfigError.
std::filesystem::path find_cluster_file(const std::filesystem::path& named,
                                        const std::filesystem::path& installed);

}  // namespace syncopate::cli
