#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "job/host/listen_at.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/rendezvous.hpp"
#include "job/roles/launched_rank.hpp"
#include "job/roles/processes.hpp"
#include "job/roles/run_job.hpp"

namespace syncopate {
namespace {

constexpr const char* for_several_hosts =
    "use --transport mpi, or set SYNCOPATE_COORDINATOR=HOST:PORT and SYNCOPATE_KEY_FILE=FILE";

void check_launchable(const TrainConfig& config, const Launch& launch) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: start the job without {}, or as one process of it", what,
                                  launch.launcher));
  };
  if (uses_shared_model(config)) {
    refuse(fmt::format("scheme {} needs memory that all workers share", config.scheme));
  }
  if (config.virtual_time) {
    refuse("virtual time needs one process for the whole job");
  }
  if (has_server(config) && servers_share_process(config)) {
    throw ConfigError(
        fmt::format("--server-process shared has no effect under {}, where every server is a rank",
                    launch.launcher));
  }
}

/// Makes this rank ignore one SIGTERM and one SIGINT. A launcher that ends a job signals every
/// rank: rank 0 then lets the round end and writes a checkpoint, and the other ranks end with the
/// job. A second signal ends a rank.
void ignore_first_signal() {
  for (const int request : {SIGTERM, SIGINT}) {
    struct sigaction once {};
    once.sa_handler = [](int) {};
    once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(request, &once, nullptr);
  }
}

std::vector<Child> processes_of(const TrainingJob& job, const JobRequest& request,
                                ListeningSocket listener, const CoordinatorEndpoint& endpoint,
                                Descriptor events) {
  const Launch& launch = *request.launch;
  const RankRole own = role_of_rank(0, job.config().servers);
  std::vector<Child> processes;
  processes.push_back(coordinator_process(
      job, std::move(listener), std::move(events),
      {.endpoint = endpoint,
       .gather_limit = request.gather_limit,
       .by_hand = true,
       .note = fmt::format("{} ranks, started by {}", launch.size, launch.launcher)}));
  processes.push_back(member_process(job, endpoint, own.role, Rank{own.index}));
  processes.push_back(member_process(job, endpoint, Role::evaluator, Rank{0}));
  return processes;
}

/// Makes the member that rank 0 itself is, and the evaluator.
std::vector<std::unique_ptr<RoleRunner>> members_of_rank_zero(const TrainingJob& job) {
  const RankRole own = role_of_rank(0, job.config().servers);
  std::vector<std::unique_ptr<RoleRunner>> members;
  members.push_back(member_role(own.role).make(job, Rank{own.index}));
  members.push_back(member_role(Role::evaluator).make(job, Rank{0}));
  return members;
}

int coordinate_over_mpi(const TrainingJob& job, const JobRequest& request, int events,
                        mpi::Session& session) {
  const Launch& launch = *request.launch;
  return coordinate(job, {.events = events,
                          .endpoint = {.address = {},
                                       .token = {},
                                       .transport = TransportKind::mpi,
                                       .session = &session},
                          .gather_limit = request.gather_limit,
                          .by_hand = true,
                          .note = fmt::format("{} ranks of {}, started by {}", launch.size,
                                              session.library(), launch.launcher),
                          .in_process = [&job] { return members_of_rank_zero(job); }});
}

/// Returns the process of rank 0. It runs all of its members as threads, because an MPI process is
/// one rank and cannot be forked.
Child leading_rank(const TrainingJob& job, const JobRequest& request, Descriptor events) {
  const int descriptor = events.get();
  Child child{.name = "rank 0", .body = [&job, &request, descriptor] {
                return run_as_mpi_rank(request, [&](mpi::Session& session) {
                  return coordinate_over_mpi(job, request, descriptor, session);
                });
              }};
  child.alone.push_back(std::move(events));
  return child;
}

int lead(const JobRequest& wanted, const OpenView& open_view) {
  RunClaim claim(wanted);
  const JobRequest& request = claim.request();
  const TrainingJob job(request.config, checkpoint_of(request));
  go_on(claim, job);
  Pipe events = make_pipe();
  if (request.config.transport == TransportKind::mpi) {
    std::vector<Child> rank;
    rank.push_back(leading_rank(job, request, std::move(events.write)));
    return run_claimed(claim, {.children = std::move(rank), .events = std::move(events.read)},
                       open_view);
  }
  const auto known = known_coordinator(from_environment);
  ListeningSocket listener =
      known ? listen_at(known->address, tcp::Network::encrypted, coordinator_variable)
            : listen_on_loopback();
  const CoordinatorEndpoint endpoint =
      known ? endpoint_of(*known, request.config.transport)
            : CoordinatorEndpoint{.address = listener.address,
                                  .token = unguessable_token(),
                                  .transport = request.config.transport};
  std::optional<Rendezvous> rendezvous;
  if (!known) {
    rendezvous.emplace(request.launch->job)
        .publish({.address = endpoint.address, .token = endpoint.token});
  }
  return run_claimed(claim,
                     {.children = processes_of(job, request, std::move(listener), endpoint,
                                               std::move(events.write)),
                      .events = std::move(events.read)},
                     open_view);
}

/// Rank 0 prints messages for all ranks, so the others print none.
log::Verbosity verbosity_of(const JobRequest& request) {
  return request.verbosity == log::Verbosity::verbose ? log::Verbosity::verbose
                                                      : log::Verbosity::quiet;
}

JoinRequest joining(const JobRequest& request) {
  const RankRole own = role_of_rank(request.launch->rank, request.config.servers);
  GivenOptions given = request.given;
  given.erase("transport");  // every rank derives the same one from the launcher
  return {.role = own.role,
          .address = "rank 0",
          .token = {},
          .index = own.index,
          .gather_limit = request.gather_limit,
          .given = std::move(given),
          .threads = request.config.threads,
          .verbosity = verbosity_of(request),
          .launched = true};
}

int follow(const JobRequest& request) {
  ignore_first_signal();
  JoinRequest join = joining(request);
  if (request.config.transport == TransportKind::mpi) {
    log::set_up(join.verbosity);
    return run_as_mpi_rank(request, [&](mpi::Session& session) {
      return join_job_over(
          connect(
              {.address = {}, .token = {}, .transport = TransportKind::mpi, .session = &session}),
          join);
    });
  }
  if (const auto known = known_coordinator(from_environment)) {
    join.address = known->address;
    join.token = known->key;
    join.place = known->place;
    join.encrypted = true;
    return join_job(join);
  }
  const Rendezvous::Place place =
      Rendezvous(request.launch->job).await(request.gather_limit, for_several_hosts);
  join.address = place.address;
  join.token = place.token;
  return join_job(join);
}

}  // namespace

int launched_job(const JobRequest& request, const OpenView& open_view) {
  check_launchable(request.config, *request.launch);
  if (request.config.transport != TransportKind::mpi && !known_coordinator(from_environment)) {
    expect_one_host(*request.launch, for_several_hosts);
  }
  return request.launch->rank == 0 ? lead(request, open_view) : follow(request);
}

}  // namespace syncopate
