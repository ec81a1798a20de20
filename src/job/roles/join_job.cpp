#include "job/roles/join_job.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/exit_status.hpp"
#include "cli/train_options.hpp"
#include "job/roles/members.hpp"
#include "job/spec/config_file.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// After which a user is told that nobody is there yet.
constexpr Milliseconds soon{1000};
/// Does without shared memory where the coordinator does.
constexpr std::string_view first_choice = "shm";

/// Waits for the coordinator for as long as the user allows, and says so once.
std::unique_ptr<Transport> reach_coordinator(const JoinCommand& command) {
  const auto limit = std::chrono::ceil<Milliseconds>(command.gather_limit);
  TransportOptions options{.token = command.token, .coordinator = command.hub, .timeout = limit};
  if (limit > soon) {
    options.timeout = soon;
    try {
      return join_over(first_choice, options);
    } catch (const TimedOut&) {
      log::info("waiting for the coordinator at {}", command.hub);
      options.timeout = limit - soon;
    }
  }
  return join_over(first_choice, options);
}

wire::Enquire enquiry_of(const JoinCommand& command) {
  wire::Enquire enquiry;
  enquiry.set_role(command.role == Role::server ? wire::ROLE_SERVER : wire::ROLE_WORKER);
  if (command.index) {
    enquiry.set_index(*command.index);
  }
  enquiry.set_host(host_name());
  enquiry.set_pid(process_id());
  return enquiry;
}

Job job_of(const wire::JobDescription& description, const JoinCommand& command) {
  const std::string whose = fmt::format("the job at {}", command.hub);
  const TrainConfig config = parse_config(description.config(), whose);
  const auto checkpoint = description.checkpoint().empty()
                              ? std::nullopt
                              : std::optional<std::filesystem::path>(description.checkpoint());
  return {config_of_joiner(config, command.given, whose), checkpoint};
}

/// On a machine that does not share the coordinator's disk, the run's folder is not there yet.
void make_folders(const RunFolder& folder) {
  for (const auto& path : {folder.checkpoints(), folder.worker_log(Rank{0}).parent_path()}) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) {
      throw DataError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
    }
  }
}

std::unique_ptr<Candidate> candidate_of(const Job& job, Role role, Rank place) {
  make_folders(job.folder());
  return role == Role::server ? make_server(job, place) : make_worker(job, place);
}

/// The coordinator has been told of the error that is being handled, and tells a user who started it together
/// with this node.
int ended(const JoinCommand& command) {
  if (!command.launched) {
    throw;
  }
  try {
    throw;
  } catch (const std::exception& error) {
    log::debug("{}", error.what());
    return status_of(error);
  }
}

}  // namespace

int join_job(const JoinCommand& command) {
  log::set_up("", command.verbosity);
  return join_job_over(reach_coordinator(command), command);
}

int join_job_over(std::unique_ptr<Transport> transport, const JoinCommand& command) {
  RealWorld world(std::move(transport));
  const wire::JobDescription description =
      enquire(world.transport(), enquiry_of(command), world.now() + command.gather_limit);
  const Rank place{description.index()};
  std::optional<Job> job;
  std::unique_ptr<Candidate> candidate;
  try {
    job.emplace(job_of(description, command));
    candidate = candidate_of(*job, command.role, place);
  } catch (const std::exception& error) {
    decline(world, error);
    return ended(command);
  }
  log::info("{} joins the job at {}: {}", name_of(command.role, place), command.hub,
            job->agreement());
  try {
    candidate->take_part(world);
  } catch (const std::exception&) {
    return ended(command);
  }
  return exit_status::success;
}

}  // namespace syncopate::cli
