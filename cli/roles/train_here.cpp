#include "cli/roles/train_here.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/exit_status.hpp"
#include "cli/launch/run_claim.hpp"
#include "cli/launch/watched_job.hpp"
#include "cli/roles/local_job.hpp"

namespace syncopate::cli {
namespace {

/// The processes of a job. What one of them must hold open alone goes with it.
std::vector<Child> processes_of(const LocalJob& job, Descriptor events) {
  Listener listener = listen_on_loopback();
  const std::string hub = listener.address;
  const int socket = listener.socket.get();
  const int event_pipe = events.get();
  std::vector<Child> processes;
  processes.push_back({.name = "coordinator", .body = [&job, socket, event_pipe] {
                         return job.coordinate(socket, event_pipe);
                       }});
  processes.back().alone.push_back(std::move(listener.socket));
  processes.back().alone.push_back(std::move(events));
  for (std::uint32_t rank = 0; rank < job.plan().config().workers; ++rank) {
    processes.push_back({.name = fmt::format("worker {}", rank),
                         .body = [&job, rank, hub] { return job.work(Rank{rank}, hub); }});
  }
  processes.push_back({.name = "evaluator", .body = [&job, hub] { return job.evaluate(hub); }});
  return processes;
}

/// A job that was refused before its first round leaves nothing behind.
bool left_something(const TrainConfig& config, int status) {
  return status != exit_status::refused ||
         std::filesystem::exists(RunFolder(config.run_dir).worker_log(Rank{0}));
}

}  // namespace

int train_here(const TrainCommand& wanted) {
  RunClaim claim(wanted);
  const TrainCommand& command = claim.command();
  const LocalJob job(command);
  Pipe events = make_pipe();
  const int status = run_watched(command, {.children = processes_of(job, std::move(events.write)),
                                           .events = std::move(events.read)});
  if (left_something(command.config, status)) {
    claim.keep();
  }
  return status;
}

}  // namespace syncopate::cli
