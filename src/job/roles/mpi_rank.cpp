#include "job/roles/mpi_rank.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "cli/exit_status.hpp"
#include "job/roles/train_launched.hpp"
#include "scheme/scheme_options.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

/// For the ranks of a job that has ended, to end together.
constexpr Duration farewell = std::chrono::seconds(10);

std::vector<std::unique_ptr<Candidate>> members_of(const Job& job) {
  std::vector<std::unique_ptr<Candidate>> members;
  const Part part = part_of(0, job.config().servers);
  members.push_back(part.role == Role::server ? make_server(job, Rank{part.index})
                                              : make_worker(job, Rank{part.index}));
  members.push_back(make_evaluator(job));
  return members;
}

}  // namespace

int run_as_mpi_rank(const TrainCommand& command, const std::function<int(mpi::Session&)>& body) {
  const Part part = part_of(command.launch->rank, command.config.servers);
  return run_as_mpi_rank(*command.launch,
                         part.role == Role::worker &&
                             command.config.scheme_options[option::aggregate] == Aggregate::mpi,
                         body);
}

int run_as_mpi_rank(const Launch& launch, bool sums,
                    const std::function<int(mpi::Session&)>& body) {
  const auto session = mpi::start(
      launch.mpi.value(),
      {.expected_size = launch.size, .allreduce = sums, .modules = chosen_mpi_modules()});
  int status = exit_status::success;
  try {
    status = body(*session);
    session->barrier(steady_now() + farewell);
  } catch (const std::exception& error) {
    print_error(fmt::format("rank {}: {}", launch.rank, error.what()).c_str());
    session->abort(status_of(error));
  }
  return status;
}

Child leading_rank(const Job& job, const TrainCommand& command, Descriptor events) {
  const int descriptor = events.get();
  Child child{.name = "rank 0", .body = [&job, &command, descriptor] {
                return run_as_mpi_rank(command, [&](mpi::Session& session) {
                  const Launch& launch = *command.launch;
                  return coordinate(
                      job, {.events = descriptor,
                            .hub = {.address = {},
                                    .token = {},
                                    .transport = TransportKind::mpi,
                                    .session = &session},
                            .gather_limit = command.gather_limit,
                            .by_hand = true,
                            .note = fmt::format("{} ranks of {}, started by {}", launch.size,
                                                session.library(), launch.launcher),
                            .residents = [&job] { return members_of(job); }});
                });
              }};
  child.alone.push_back(std::move(events));
  return child;
}

}  // namespace syncopate::cli
