#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_processes.hpp"
#include "cli/bench/bench_report.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::cli {

/// Reports the progress and the results of a benchmark from its first process to its parent.
class BenchReporter {
 public:
  /// Takes each report.
  using Report = std::function<void(const nlohmann::ordered_json& line)>;
  explicit BenchReporter(Report report) : report_(std::move(report)) {}

  /// `what` is measured from now on. Not to be called while something is timed.
  void begins(const std::string& what);
  void result(const nlohmann::ordered_json& figures);

 private:
  Report report_;
};

/// What a process of a benchmark does; `index` is its place among the names. Only the first one
/// reports.
using ProcessBody = std::function<void(std::uint32_t index, BenchReporter& reporter)>;

/// Runs processes of these names to their end, with what is under way on standard error where that
/// is a terminal, and prints what they found. Gives the exit status. When one dies or fails, the
/// others are ended, and one line says which and why.
///
/// Thread: to be called while this process has one thread.
int run_processes(const std::vector<std::string>& names, Form form, const ProcessBody& body);

/// What one of the ranks does that a launcher of MPI started. Only the first one reports.
using RankBody = std::function<void(mpi::Session& session, BenchReporter& reporter)>;

/// Runs this process's part of a benchmark that has a rank for each name; the first one prints what
/// they found. Gives the exit status. Where a rank fails, it says why in one line and ends them
/// all.
///
/// Errors: ConfigError: no launcher has started this process, or it started another number of
/// ranks; as `mpi::start`.
int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body);

}  // namespace syncopate::cli
