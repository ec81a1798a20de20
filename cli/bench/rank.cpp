#include "cli/bench/rank.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/exit_status.hpp"
#include "job/launch/launcher.hpp"

namespace syncopate::cli {
namespace {

Launch launched() {
  const auto launch = own_launch();
  if (!launch || !launch->mpi) {
    throw ConfigError(
        "expected a launcher of MPI, for --transport mpi; found none: start it as mpirun -n N "
        "syncopate bench …");
  }
  return *launch;
}

}  // namespace

int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body) {
  const Launch by = launched();
  if (by.size != names.size()) {
    throw ConfigError(
        fmt::format("expected {} ranks, as the options say; found that {} were started",
                    names.size(), by.size));
  }
  log::set_up("", log::Verbosity::quiet);
  const auto session = mpi::start(
      *by.mpi, {.expected_size = by.size, .allreduce = true, .modules = chosen_mpi_modules()});
  Results results;
  Teller teller([&](const nlohmann::ordered_json& line) {
    if (const auto result = line.find("result"); result != line.end()) {
      results.push_back(*result);
    }
  });
  const int status = guarded([&] {
    body(*session, teller);
    return exit_status::success;
  });
  if (status != exit_status::success) {
    session->abort(status);
  }
  if (session->rank() == 0) {
    fmt::print("{}\n", report(results, form));
  }
  return status;
}

}  // namespace syncopate::cli
