#include "job/roles/train_launched.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "job/launch/rendezvous.hpp"
#include "job/roles/join_job.hpp"
#include "job/roles/mpi_rank.hpp"
#include "job/roles/processes.hpp"

namespace syncopate::cli {
namespace {

void check_launchable(const TrainConfig& config, const Launch& launch) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: start the job without {}, or as one process of it", what,
                                  launch.launcher));
  };
  if (uses_shared_model(config)) {
    refuse(fmt::format("scheme {} needs memory that all workers share", config.scheme));
  }
  if (config.virtual_time) {
    refuse("virtual time passes within one process");
  }
  if (has_server(config) && shares_process(config)) {
    throw ConfigError(
        fmt::format("--server-process shared has no effect under {}, where every server is a rank",
                    launch.launcher));
  }
}

/// A launcher that ends a job asks all ranks at once; rank 0 then lets the round end and writes a checkpoint, and
/// the others end with the job. Who is asked twice ends.
void leave_the_end_to_rank_zero() {
  for (const int wish : {SIGTERM, SIGINT}) {
    struct sigaction once {};
    once.sa_handler = [](int) {};
    once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(wish, &once, nullptr);
  }
}

Child own_part(const Job& job, const Hub& hub) {
  const Part part = part_of(0, job.config().servers);
  return part.role == Role::server ? server_process(job, hub, Rank{part.index})
                                   : worker_process(job, hub, Rank{part.index});
}

std::vector<Child> processes_of(const Job& job, const TrainCommand& command, Listener listener,
                                const Hub& hub, Descriptor events) {
  const Launch& launch = *command.launch;
  std::vector<Child> processes;
  processes.push_back(coordinator_process(
      job, std::move(listener), std::move(events),
      {.hub = hub,
       .gather_limit = command.gather_limit,
       .by_hand = true,
       .note = fmt::format("{} ranks, started by {}", launch.size, launch.launcher)}));
  processes.push_back(own_part(job, hub));
  processes.push_back(evaluator_process(job, hub));
  return processes;
}

int lead(const TrainCommand& wanted) {
  RunClaim claim(wanted);
  const TrainCommand& command = claim.command();
  const Job job(command.config, checkpoint_of(command));
  Pipe events = make_pipe();
  if (command.config.transport == TransportKind::mpi) {
    std::vector<Child> rank;
    rank.push_back(leading_rank(job, command, std::move(events.write)));
    return run_claimed(claim, {.children = std::move(rank), .events = std::move(events.read)});
  }
  Listener listener = listen_on_loopback();
  const Hub hub{.address = listener.address,
                .token = unguessable_token(),
                .transport = command.config.transport};
  Rendezvous rendezvous(command.launch->job);
  rendezvous.publish({.address = hub.address, .token = hub.token});
  return run_claimed(claim, {.children = processes_of(job, command, std::move(listener), hub,
                                                      std::move(events.write)),
                             .events = std::move(events.read)});
}

/// What rank 0 says for all is not said again by every rank.
log::Verbosity verbosity_of(const TrainCommand& command) {
  return command.output.verbosity == log::Verbosity::verbose ? log::Verbosity::verbose
                                                             : log::Verbosity::quiet;
}

JoinCommand joining(const TrainCommand& command) {
  const Part part = part_of(command.launch->rank, command.config.servers);
  GivenOptions given = command.given;
  given.erase("transport");  // every rank has found the same, from the same launcher
  return {.role = part.role,
          .hub = "rank 0",
          .token = {},
          .index = part.index,
          .gather_limit = command.gather_limit,
          .given = std::move(given),
          .threads = command.config.threads,
          .verbosity = verbosity_of(command),
          .launched = true};
}

int follow(const TrainCommand& command) {
  leave_the_end_to_rank_zero();
  JoinCommand join = joining(command);
  if (command.config.transport == TransportKind::mpi) {
    log::set_up("", join.verbosity);
    return run_as_mpi_rank(command, [&](mpi::Session& session) {
      return join_job_over(
          join_hub(
              {.address = {}, .token = {}, .transport = TransportKind::mpi, .session = &session}),
          join);
    });
  }
  const Rendezvous::Place place = Rendezvous(command.launch->job).await(command.gather_limit);
  join.hub = place.address;
  join.token = place.token;
  return join_job(join);
}

}  // namespace

Part part_of(std::uint32_t rank, std::uint32_t servers) {
  return rank < servers ? Part{Role::server, rank} : Part{Role::worker, rank - servers};
}

int train_launched(const TrainCommand& command) {
  check_launchable(command.config, *command.launch);
  return command.launch->rank == 0 ? lead(command) : follow(command);
}

}  // namespace syncopate::cli
