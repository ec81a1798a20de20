#include "cli/roles/mpi_rank.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/errors.hpp"
#include "cli/exit_status.hpp"
#include "cli/roles/train_launched.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

/// For the ranks of a job that has ended, to end together.
constexpr Duration farewell = std::chrono::seconds(10);

mpi::EndpointOptions options_of(const TrainCommand& command) {
  const Part part = part_of(command.launch->rank, command.config.servers);
  const char* modules = std::getenv("SYNCOPATE_MPI_MODULES");
  return {.expected_size = command.launch->size,
          .sums = part.role == Role::worker && command.config.aggregate == "mpi",
          .modules = modules == nullptr ? "" : modules};
}

std::vector<std::unique_ptr<Candidate>> members_of(const Job& job) {
  std::vector<std::unique_ptr<Candidate>> members;
  const Part part = part_of(0, job.config().servers);
  members.push_back(part.role == Role::server ? make_server(job, Rank{part.index})
                                              : make_worker(job, Rank{part.index}));
  members.push_back(make_evaluator(job));
  return members;
}

}  // namespace

int run_as_mpi_rank(const TrainCommand& command, const std::function<int(mpi::Endpoint&)>& body) {
  const auto endpoint = mpi::start(command.launch->mpi.value(), options_of(command));
  try {
    const int status = body(*endpoint);
    endpoint->barrier(steady_now() + farewell);
    return status;
  } catch (const std::exception& error) {
    print_error(fmt::format("rank {}: {}", command.launch->rank, error.what()).c_str());
    endpoint->abort(status_of(error));
  }
}

Child leading_rank(const Job& job, const TrainCommand& command, Descriptor events) {
  const int descriptor = events.get();
  Child child{.name = "rank 0", .body = [&job, &command, descriptor] {
                return run_as_mpi_rank(command, [&](mpi::Endpoint& endpoint) {
                  const Launch& launch = *command.launch;
                  return coordinate(
                      job, {.events = descriptor,
                            .hub = {.address = {}, .token = {}, .endpoint = &endpoint},
                            .gather_limit = command.gather_limit,
                            .by_hand = true,
                            .note = fmt::format("{} ranks of {}, started by {}", launch.size,
                                                endpoint.library(), launch.launcher),
                            .residents = [&job] { return members_of(job); }});
                });
              }};
  child.alone.push_back(std::move(events));
  return child;
}

}  // namespace syncopate::cli
