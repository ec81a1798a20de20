#pragma once

#include <filesystem>
#include <vector>

#include "cli/report/run_record.hpp"

namespace syncopate::cli {

/// Reads each folder. The folder of a comparison stands for its counted runs, which get the labels
/// of their contestants and the comparison's cluster and target. A folder that appears twice counts
/// once.
/// Errors: ConfigError, for a folder that is neither; DataError, for a file that cannot be read.
std::vector<RunRecord> read_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace syncopate::cli
