#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/processes.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::cli {

/// What one of the ranks does that a launcher of MPI started. Only the first one tells.
using RankBody = std::function<void(mpi::Session& session, Teller& teller)>;

/// Runs this process's part of a benchmark that has a rank for each name; the first one prints what they found. Gives
/// the exit status. Where a rank fails, it says why in one line and ends them all.
///
/// Errors: ConfigError: no launcher has started this process, or it started another number of ranks; as `mpi::start`.
int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body);

}  // namespace syncopate::cli
