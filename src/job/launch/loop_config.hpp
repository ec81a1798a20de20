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

/// How the samples of an epoch are divided among programs with a loop of their own.
enum class DataOrder {
  automatic,  ///< leased where workers take different numbers of steps, else fixed
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
        "once an epoch at any speed; auto: leased where workers take different numbers of "
        "steps",
    .initial = DataOrder::automatic};

/// The options of programs with a loop of their own: those of `train` that also hold for them,
/// `workers` apart, and `data_order_option`. The program decides about all else: model, data,
/// optimizer, length.
std::span<const OptionSpec* const> loop_options();

/// Refuses an option that is not of `loop_options`, and a value that it does not take.
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

/// The order under these options, never `automatic`; one worker has a fixed one. `config` is what
/// `loop_config` makes of them.
DataOrder data_order_in(const GivenOptions& options, const TrainConfig& config);

/// The number of workers: `given`, or the devices of the cluster file among `options`, or 1.
/// Errors: ConfigError, where the two contradict each other.
std::uint32_t workers_of_loops(const GivenOptions& options, std::uint32_t given);

/// The samples of one step of a worker whose share of the global batch is `batch`: the scheme may
/// divide it. Errors: as `loop_config`.
std::uint32_t samples_of_loop_step(const TrainConfig& config, std::uint32_t batch);

}  // namespace syncopate
