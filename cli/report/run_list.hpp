#pragma once

#include <filesystem>
#include <vector>

#include "cli/report/run_record.hpp"

namespace syncopate::cli {

/// Reads each folder of a run or a comparison. The folder of a comparison stands for its counted
/// runs, which get the labels of their contestants and the comparison's cluster and target. A
/// folder that appears twice counts once.
/// Errors: ConfigError if a folder is neither; DataError if a file cannot be read.
std::vector<RunRecord> read_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace syncopate::cli
