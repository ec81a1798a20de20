#include "job/program/run_programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/end_request.hpp"
#include "base/errors.hpp"
#include "base/random.hpp"
#include "job/host/coordinate.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/event_pipe.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/program_environment.hpp"
#include "job/launch/run_claim.hpp"
#include "job/program/program_host.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

/// For programs to save what they have when the user has requested the end.
constexpr Duration time_to_end = std::chrono::seconds(10);

ProgramHost::Options host_options(const ProgramsRequest& request, const std::string& key,
                                  ProgramEnds& ends, EventPipe& events) {
  const auto emit = [&events](const Recorder::Json& event) { events.emit(event); };
  return {.programs = request.workers,
          .several_jobs = true,
          .gather_limit = request.gather_limit,
          .emit = emit,
          .wait_limit = from_seconds(request.config.wait_limit),
          .interrupted = end_requested,
          .ended = [&ends] { return ends.take(); },
          .name = fmt::format("the coordinator (pid {} on {})", process_id(), host_name()),
          .hung =
              [emit, &events](const std::string& reason) {
                emit({{"event", "failed"},
                      {"kind", wire::Abort::Kind_Name(wire::Abort::KIND_TIMED_OUT)},
                      {"error", reason}});
                events.finish();
                report_hang(reason);
                ::_exit(exit_status::failure);  // a thread that hangs never would
              },
          .wall_time = wall_seconds(),
          .key = key};
}

/// What the coordinator's process inherits. Owns the listener, borrows the rest.
struct Inherited {
  std::string key;
  int listener = -1;
  int events = -1;
  ProgramEnds* ends = nullptr;
};

/// The body of the coordinator's process.
int coordinate_programs(const ProgramsRequest& request, const Inherited& inherited) {
  take_end_requests();
  EventPipe events(inherited.events);
  RealWorld world(listen_over(
      "shm", {.token = inherited.key, .descriptor = inherited.listener, .control_only = true}));
  int status = exit_status::success;
  try {
    ProgramHost(world, host_options(request, inherited.key, *inherited.ends, events)).run();
  } catch (const std::exception& error) {
    status = status_of(error);
  }
  world.transport().close(world.now() + std::chrono::seconds(2));
  return status;
}

/// Becomes the program. Returns only where it cannot be started.
int become_program(const ProgramsRequest& request, const ProgramLaunch& launch,
                   const std::string& torch_port) {
  for (const auto& [name, value] : variables_of(launch)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  for (const auto& [name, value] : torch_variables_of(launch, torch_port)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : request.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // execvp does not write into them
  }
  arguments.push_back(nullptr);
  std::signal(SIGXFSZ, SIG_DFL);  // as it was before the command line ignored it
  ::execvp(arguments.front(), arguments.data());
  throw ConfigError(
      fmt::format("cannot start {}: {}", request.command.front(), std::strerror(errno)));
}

Child program_process(const ProgramsRequest& request, const ProgramLaunch& launch,
                      const std::string& torch_port) {
  return {.name = fmt::format("worker {}", launch.rank), .body = [&request, launch, torch_port] {
            return become_program(request, launch, torch_port);
          }};
}

/// That nothing listens on now, and that the program of rank 0 may take for torch.distributed.
std::string free_port() {
  const std::string address = listen_on_loopback().address;
  return address.substr(address.rfind(':') + 1);
}

Child host_process(const ProgramsRequest& request, Inherited inherited, ListeningSocket listener,
                   Descriptor events) {
  inherited.listener = listener.socket.get();
  inherited.events = events.get();
  Child child{.name = "coordinator",
              .body = [&request, inherited] { return coordinate_programs(request, inherited); }};
  child.alone.push_back(std::move(listener.socket));
  child.alone.push_back(std::move(events));
  return child;
}

/// Claims the folder that the user has named, and gives it up again, so that one that cannot be
/// used is refused before anything is started.
void check_run_folder(const ProgramsRequest& request) {
  if (request.given.contains("run-dir")) {
    const RunClaim claim({.config = request.config, .named_run_dir = true});
  }
}

}  // namespace

int run_programs(const ProgramsRequest& request, const OpenView& open_view) {
  check_run_folder(request);
  const std::string key = unguessable_token();
  ListeningSocket listener = listen_on_loopback();
  const std::string address = listener.address;
  Pipe events = make_pipe();
  ProgramEnds ends;
  const std::string torch_port = free_port();
  std::vector<Child> children;
  children.push_back(host_process(request, {.key = key, .ends = &ends}, std::move(listener),
                                  std::move(events.write)));
  for (std::uint32_t rank = 0; rank < request.workers; ++rank) {
    children.push_back(program_process(request,
                                       {.coordinator = address,
                                        .key = key,
                                        .rank = rank,
                                        .size = request.workers,
                                        .local_rank = rank,
                                        .options = request.given},
                                       torch_port));
  }
  const auto view = open_view(request.config);
  return run_watched({.children = std::move(children),
                      .events = std::move(events.read),
                      .requested_grace = time_to_end,
                      .orderly_grace = time_to_end,
                      .programs = &ends},
                     request.verbosity, *view);
}

}  // namespace syncopate
