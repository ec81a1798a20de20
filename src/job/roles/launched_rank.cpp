#include "job/roles/launched_rank.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "job/launch/exit_status.hpp"
#include "scheme/scheme_options.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {
namespace {

/// Time within which all ranks must end once the job has ended.
constexpr Duration exit_limit = std::chrono::seconds(10);

}  // namespace

RankRole role_of_rank(std::uint32_t rank, std::uint32_t servers) {
  return rank < servers ? RankRole{Role::server, rank} : RankRole{Role::worker, rank - servers};
}

int run_as_mpi_rank(const JobRequest& request, const std::function<int(mpi::Session&)>& body) {
  const TrainConfig& config = request.config;
  const RankRole own = role_of_rank(request.launch->rank, config.servers);
  const Aggregate aggregate = config.scheme_options[option::aggregate];
  const bool sums = own.role == Role::worker && aggregate.reducer == find_reducer("mpi");
  return run_as_mpi_rank(*request.launch, sums, body);
}

int run_as_mpi_rank(const Launch& launch, bool sums,
                    const std::function<int(mpi::Session&)>& body) {
  const auto session = mpi::start(
      launch.mpi.value(),
      {.expected_size = launch.size, .allreduce = sums, .modules = chosen_mpi_modules()});
  int status = exit_status::success;
  try {
    status = body(*session);
    session->barrier(steady_now() + exit_limit);
  } catch (const std::exception& error) {
    print_error(fmt::format("rank {}: {}", launch.rank, error.what()).c_str());
    session->abort(status_of(error));
  }
  return status;
}

}  // namespace syncopate
