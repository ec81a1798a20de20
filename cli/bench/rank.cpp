#include "cli/bench/rank.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/exit_status.hpp"

namespace syncopate::cli {
namespace {

struct Launched {
  mpi::Library library;
  std::uint32_t ranks;
};

/// By what launchers tell their processes.
Launched launched() {
  const std::pair<const char*, mpi::Library> signs[] = {
      {"OMPI_COMM_WORLD_SIZE", mpi::Library::open_mpi}, {"PMI_SIZE", mpi::Library::mpich}};
  for (const auto& [name, library] : signs) {
    if (const char* const size = std::getenv(name)) {
      return {library, static_cast<std::uint32_t>(std::strtoul(size, nullptr, 10))};
    }
  }
  throw ConfigError(
      "expected a launcher of MPI, for --transport mpi; found none: start it as mpirun -n N "
      "syncopate bench …");
}

std::string modules() {
  const char* const folder = std::getenv("SYNCOPATE_MPI_MODULES");
  return folder == nullptr ? "" : folder;
}

}  // namespace

int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body) {
  const Launched by = launched();
  if (by.ranks != names.size()) {
    throw ConfigError(
        fmt::format("expected {} ranks, as the options say; found that {} were started",
                    names.size(), by.ranks));
  }
  log::set_up("", log::Verbosity::quiet);
  const auto endpoint =
      mpi::start(by.library, {.expected_size = by.ranks, .sums = true, .modules = modules()});
  Results results;
  Teller teller([&](const nlohmann::ordered_json& line) {
    if (const auto result = line.find("result"); result != line.end()) {
      results.push_back(*result);
    }
  });
  const int status = guarded([&] {
    body(*endpoint, teller);
    return exit_status::success;
  });
  if (status != exit_status::success) {
    endpoint->abort(status);
  }
  if (endpoint->rank() == 0) {
    fmt::print("{}\n", report(results, form));
  }
  return status;
}

}  // namespace syncopate::cli
