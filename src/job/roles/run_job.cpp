#include "job/roles/run_job.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "job/host/join.hpp"
#include "job/host/listen_at.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/rendezvous.hpp"
#include "job/roles/processes.hpp"

namespace syncopate {
namespace {

std::vector<Child> processes_of(const TrainingJob& job, Descriptor events, Duration gather_limit) {
  std::vector<Child> processes;
  if (job.config().virtual_time) {
    processes.push_back(simulation_process(job, std::move(events)));
    return processes;
  }
  ListeningSocket listener = listen_on_loopback();
  const CoordinatorEndpoint endpoint{.address = listener.address,
                                     .token = unguessable_token(),
                                     .transport = job.config().transport};
  processes.push_back(coordinator_process(
      job, std::move(listener), std::move(events),
      {.endpoint = endpoint, .gather_limit = gather_limit, .in_process = servers_in_process(job)}));
  std::vector<Child> members = member_processes(job, endpoint);
  std::move(members.begin(), members.end(), std::back_inserter(processes));
  return processes;
}

std::unique_ptr<HostSite> make_site(const TrainConfig& config,
                                    std::optional<std::filesystem::path> resume_from) {
  return std::make_unique<TrainingJob>(config, std::move(resume_from));
}

}  // namespace

int train_job(const JobRequest& wanted, const OpenView& open_view) {
  if (wanted.launch) {
    return launched_job(wanted, open_view);
  }
  RunClaim claim(wanted);
  const JobRequest& request = claim.request();
  TrainingJob job(request.config, checkpoint_of(request));
  go_on(claim, job);
  job.share_memory();
  Pipe events = make_pipe();
  Supervisor::Options processes{
      .children = processes_of(job, std::move(events.write), request.gather_limit),
      .events = std::move(events.read)};
  if (request.config.virtual_time) {
    processes.answer = Duration::zero();  // the simulation may compute for long between two events
  }
  return run_claimed(claim, std::move(processes), open_view);
}

int coordinate_job(const CoordinateRequest& wanted, const OpenView& open_view) {
  const TrainConfig& config = wanted.job.config;
  if (uses_shared_model(config)) {
    throw ConfigError(fmt::format(
        "scheme {} needs memory that all workers share: start them together, by `syncopate train`",
        config.scheme));
  }
  if (config.virtual_time) {
    throw ConfigError(
        "a job in virtual time runs in one process, which no other can join: start the job by "
        "`syncopate train`");
  }
  // Before any process starts, so that an address in use causes an error at once.
  ListeningSocket listener =
      listen_at(wanted.address,
                wanted.key.empty() ? tcp::Network::loopback : tcp::Network::encrypted, "--listen");
  RunClaim claim(wanted.job);
  const JobRequest& request = claim.request();
  std::optional<KeyFile> own_key;
  if (wanted.key.empty()) {
    own_key.emplace(request.config.run_dir);
  }
  const CoordinatorEndpoint endpoint{.address = listener.address,
                                     .token = own_key ? own_key->key() : wanted.key,
                                     .transport = config.transport,
                                     .encrypted = true};
  const TrainingJob job(request.config, checkpoint_of(request));
  go_on(claim, job);
  Pipe events = make_pipe();
  std::vector<Child> processes;
  processes.push_back(coordinator_process(job, std::move(listener), std::move(events.write),
                                          {.endpoint = endpoint,
                                           .gather_limit = request.gather_limit,
                                           .by_hand = true,
                                           .key_file = own_key ? own_key->path().string() : "",
                                           .in_process = servers_in_process(job)}));
  processes.push_back(member_process(job, endpoint, Role::evaluator, Rank{0}));
  return run_claimed(claim, {.children = std::move(processes), .events = std::move(events.read)},
                     open_view);
}

int join_job(const JoinRequest& request) {
  log::set_up(request.verbosity);
  return join_job_over(reach_coordinator(request), request);
}

int join_job_over(std::unique_ptr<Transport> transport, const JoinRequest& request) {
  JoinedMember node(std::move(transport), request);
  try {
    node.prepare(make_site);
    node.run();
    return exit_status::success;
  } catch (const std::exception& error) {
    if (!request.launched) {
      throw;
    }
    log::debug("{}", error.what());  // the coordinator knows the error, and rank 0 shows it
    return status_of(error);
  }
}

}  // namespace syncopate
