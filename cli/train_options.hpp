#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/handlers.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

/// Adds an option for every field of `TrainConfig`, `--config` and `--resume`.
void add_train_options(CLI::App& app);

/// Adds an option for every field of `TrainConfig`, for a process that joins a job. Options of its
/// own machine set values; all others must agree with the job.
void add_expectations(CLI::App& app);

/// Adds every option that applies to programs with their own training loop, and `-n`.
void add_loop_options(CLI::App& app);

/// The default BatchNorm statistics of evaluations in a comparison. Running statistics lag behind
/// the parameters, with some schemes more than with others, which would distort the comparison.
inline constexpr BatchNormStatistics comparisons_batch_norm = BatchNormStatistics::recomputed;

/// Adds an option for every field that the jobs of a comparison share, and `--config`.
void add_common_options(CLI::App& app);

/// Adds an option for every field that determines the order of a worker's samples, and `--config`.
/// `common_config_of` reads them.
void add_data_options(CLI::App& app);

/// The configuration from these options. Only the path of the cluster file is resolved. Errors:
/// ConfigError; DataError, for a file that cannot be read.
TrainConfig common_config_of(const CLI::App& app);

/// The options that the user gave, each checked by itself. Errors: ConfigError.
GivenOptions given_options(const CLI::App& app);

/// The options of `add_loop_options` that the user gave, without the number of workers.
GivenOptions given_loop_options(const CLI::App& app);

/// The configuration of a parsed command line, not yet resolved. Options override the file of
/// `--config` or the run of `--resume`, which override the defaults.
///
/// Errors: ConfigError if an option does not accept its value, if options contradict each other, or
///         if, with `--resume`, an option would change what the run computes; DataError if a file
///         cannot be read.
TrainConfig config_of(const CLI::App& app);

/// Adds `--quiet` and `--verbose`, and `--json` for a command that shows a job.
enum class Says { lines, events };
void add_output_options(CLI::App& app, Says what);

/// Reads `--quiet`, `--verbose` and `--json`. Errors: ConfigError.
OutputOptions output_of(const CLI::App& app);

/// The resolved job of a parsed command line. Errors: as `config_of`, and ConfigError for options
/// that contradict each other.
TrainCommand job_of(const CLI::App& app, const Handlers& handlers);

/// The path of the cluster file that the user names by its path, or by the name of a file that was
/// installed with the program (`mixed`, `clusters/mixed.toml`). Errors: ConfigError.
std::filesystem::path find_cluster_file(const std::filesystem::path& named,
                                        const std::filesystem::path& installed);

}  // namespace syncopate::cli
