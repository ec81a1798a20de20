#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_report.hpp"
#include "job/launch/launcher.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::cli {

/// Reports the progress and the results of a benchmark from its first process to its parent.
class BenchReporter {
 public:
  /// Receives each report.
  using Report = std::function<void(const nlohmann::ordered_json& line)>;
  explicit BenchReporter(Report report) : report_(std::move(report)) {}

  /// Reports that the measurement of `what` begins. Do not call it during a timed round.
  void begins(const std::string& what);
  void result(const nlohmann::ordered_json& figures);

 private:
  Report report_;
};

/// The body of a process of a benchmark; `index` is the index of its name. Only the first process
/// reports.
using ProcessBody = std::function<void(std::uint32_t index, BenchReporter& reporter)>;

/// Runs processes of these names to their end, and prints the results. If standard error is a
/// terminal, it shows the current measurement. Returns the exit status. When a process dies or
/// fails, the function ends the others, and prints one line with its name and the reason.
///
/// Thread: to be called while this process has one thread.
int run_processes(const std::vector<std::string>& names, Form form, const ProcessBody& body);

/// The body of a rank that an MPI launcher started. Only the first rank reports.
using RankBody = std::function<void(mpi::Session& session, BenchReporter& reporter)>;

/// Runs this process's part of a benchmark that has a rank for each name; the first rank prints the
/// results. Returns the exit status. A rank that fails prints the reason in one line and ends all
/// ranks.
///
/// Errors: ConfigError if no launcher started this process, or if it started another number of
/// ranks; those of `mpi::start`.
int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body);

/// The same for the rank of a launcher, without MPI. Errors: ConfigError if the launcher started
/// another number of ranks.
int run_rank(Form form, const std::vector<std::string>& names, const Launch& by,
             const ProcessBody& body);

}  // namespace syncopate::cli
