#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "job/launch/job_request.hpp"

namespace syncopate {

/// The options of `train` that also hold for programs with a loop of their own, `workers` apart.
/// The program decides about all else: model, data, optimizer, length.
std::span<const Field* const> loop_fields();

/// Refuses an option that is not of `loop_fields`, and a value that it does not take.
/// Errors: ConfigError.
void check_loop_options(const GivenOptions& given);

/// Options and where they were given: "on the command line", "in the program".
struct OptionSource {
  const GivenOptions& options;
  const char* where;
};

/// The options of both. Errors: ConfigError, for an option that has two values, and as
/// `check_loop_options` for those that came later.
GivenOptions merged_options(const OptionSource& first, const OptionSource& later);

/// The batch size, the optimizer and its hyperparameters, which follow from the program itself, are
/// also in `options`. The job has neither an evaluator nor checkpoints nor an end of its own, and
/// its servers share the coordinator's process. Errors: ConfigError.
TrainConfig loop_config(const GivenOptions& options, std::uint32_t workers);

/// The number of workers: `given`, or the devices of the cluster file among `options`, or 1.
/// Errors: ConfigError, where the two contradict each other.
std::uint32_t workers_of_loops(const GivenOptions& options, std::uint32_t given);

/// The samples of one step of a worker whose share of the global batch is `batch`: the scheme may
/// divide it. Errors: as `loop_config`.
std::uint32_t samples_of_loop_step(const TrainConfig& config, std::uint32_t batch);

}  // namespace syncopate
