#include "spec/batch_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/errors.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {
namespace {

/// Errors: ConfigError if sizes are listed for another number of workers.
void check_list(std::string_view name, const std::optional<BatchSizes>& sizes,
                std::uint32_t workers) {
  const std::size_t listed = sizes ? sizes->listed() : 0;
  if (listed > 0 && listed != workers) {
    throw ConfigError(fmt::format("{} {} lists {} sizes for {} worker{}; list one for each", name,
                                  fmt::join(sizes->sizes(), ","), listed, workers,
                                  workers == 1 ? "" : "s"));
  }
}

}  // namespace

void check_batches(const TrainConfig& config) {
  if (config.global_batch && *config.global_batch / least_part_of_batch < config.workers) {
    throw ConfigError(
        fmt::format("global batch {}: expected at least {} samples for each of {} "
                    "workers, {} in all",
                    *config.global_batch, least_part_of_batch, config.workers,
                    least_part_of_batch * config.workers));
  }
  if (config.batch_size && config.global_batch) {
    throw ConfigError(fmt::format(
        "batch size {} of each worker and global batch {} exclude each other; give one of them",
        fmt::join(config.batch_size->sizes(), ","), *config.global_batch));
  }
  check_list("batch size", config.batch_size, config.workers);
  check_list("max batch size", config.max_batch_size, config.workers);
  std::uint64_t most = 0;
  for (std::uint32_t rank = 0; config.max_batch_size && rank < config.workers; ++rank) {
    most += config.max_batch_size->of(rank);
  }
  const bool is_divided = config.global_batch && !traits_of(config).divides_batches;
  if (is_divided && config.max_batch_size && most < *config.global_batch) {
    throw ConfigError(
        fmt::format("global batch {} does not fit into the max batch size {} of {} workers, {} in "
                    "all; lower one or raise the other",
                    *config.global_batch, fmt::join(config.max_batch_size->sizes(), ","),
                    config.workers, most));
  }
}

void expect_batches_within_limits(const TrainConfig& config) {
  const BatchSizes& given = *config.batch_size;
  const BatchSizes& most = *config.max_batch_size;
  const std::size_t workers = std::max({given.listed(), most.listed(), std::size_t{1}});
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const bool has_both = (given.listed() == 0 || rank < given.listed()) &&
                          (most.listed() == 0 || rank < most.listed());
    if (has_both && given.of(rank) > most.of(rank)) {
      throw ConfigError(
          fmt::format("batch size {} of worker {} is above its max batch size {}; lower one or "
                      "raise the other",
                      given.of(rank), rank, most.of(rank)));
    }
  }
}

}  // namespace syncopate
