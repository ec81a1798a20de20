#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/option.hpp"
#include "config/option_values.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// How the samples of an epoch are divided among programs with their own training loops.
enum class DataOrder {
  automatic,  ///< leased if workers take different numbers of steps, else fixed
  fixed,      ///< each worker has a part, which follows from the seed
  leased,     ///< the coordinator leases ranges to the workers that ask for them
};
constexpr auto names_of(DataOrder) {
  return std::to_array<Named<DataOrder>>(
      {{"auto", DataOrder::automatic}, {"fixed", DataOrder::fixed}, {"leased", DataOrder::leased}});
}

inline constexpr Option<DataOrder> data_order_option{
    .name = "data-order",
    .group = option_group::model_and_data,
    .value = "NAME",
    .help =
        "samples of each worker; fixed: a part of each epoch that follows from the seed; "
        "leased: ranges in the order in which workers ask, so that each sample is trained on "
        "once an epoch at any speed; auto: leased if workers take different numbers of "
        "steps",
    .initial = DataOrder::automatic};

/// The options of programs with their own training loops: those of `train` that also apply to them,
/// except `workers`, and `data_order_option`. The program decides about everything else: model,
/// data, optimizer, length.
std::span<const OptionSpec* const> loop_options();

/// Refuses an option that is not in `loop_options`, and a value that the option does not accept.
/// Errors: ConfigError.
void check_loop_options(const GivenOptions& given);

/// Options and where they were given: "on the command line", "in the program".
struct OptionSource {
  const GivenOptions& options;
  const char* where;
};

/// The options of both. Errors: ConfigError if an option has two values; those of
/// `check_loop_options` for the later ones.
GivenOptions merged_options(const OptionSource& first, const OptionSource& later);

/// How the workers of programs divide the samples of a step of all.
enum class Division {
  equal,     ///< each takes as many
  by_speed,  ///< as many as its device can, as far as the scheme follows speeds (`--global-batch`)
};

/// Sets the samples of a step: of each worker, or, by speed, of all together, for the scheme among
/// the options.
void set_batch(GivenOptions& options, std::uint32_t samples, Division division);

/// The configuration of a job of programs. `options` also has the batch size, the optimizer and its
/// hyperparameters, which follow from the program itself. The job has neither an evaluator nor
/// checkpoints nor an end of its own, and its servers share the coordinator's process. Errors:
/// ConfigError.
TrainConfig loop_config(const GivenOptions& options, std::uint32_t workers);

/// The order under these options, never `automatic`; a single worker has a fixed one. `config`: the
/// result of `loop_config` for the options.
DataOrder data_order_in(const GivenOptions& options, const TrainConfig& config);

/// The number of workers: `given`, or the devices of the cluster file among `options`, or 1.
/// Errors: ConfigError if the two contradict each other.
std::uint32_t workers_of_loops(const GivenOptions& options, std::uint32_t given);

/// The samples of one step of a worker whose share of the global batch is `batch`: the scheme may
/// divide it. Errors: as `loop_config`.
std::uint32_t samples_of_loop_step(const TrainConfig& config, std::uint32_t batch);

}  // namespace syncopate
