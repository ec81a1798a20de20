#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/dataset.hpp"

/// Checks and computations that the readers of all formats share.
namespace syncopate {

/// Refuses a set that this machine's memory cannot hold, before it is read; `path` names it in the
/// error.
/// Errors: DataError.
void check_size(const std::filesystem::path& path, std::uint64_t samples, const SampleShape& shape);

/// The same for a memory of `most_bytes`.
void check_size(const std::filesystem::path& path, std::uint64_t samples, const SampleShape& shape,
                std::uint64_t most_bytes);

/// Refuses a label that is not below `classes`. Errors: DataError.
void check_labels(const std::filesystem::path& path, std::span<const Label> labels,
                  std::uint32_t classes);

/// Sets the dataset's mean and standard deviation to those of its training set, by channel. The
/// deviation of a channel that is the same everywhere becomes 1.
void measure_channels(Dataset& dataset);

/// Drops the samples of the set that `which` does not request.
void keep_only(Which which, Dataset& dataset);

}  // namespace syncopate
