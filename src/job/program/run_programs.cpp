#include "job/program/run_programs.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/end_request.hpp"
#include "base/errors.hpp"
#include "base/random.hpp"
#include "job/host/coordinate.hpp"
#include "job/host/listen_at.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/event_pipe.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/job_key.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/program_environment.hpp"
#include "job/launch/run_claim.hpp"
#include "job/program/launcher_link.hpp"
#include "job/program/program_host.hpp"
#include "runtime/real_world.hpp"
#include "transport/tcp/interfaces.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

/// For programs to save what they have when the user has requested the end.
constexpr Duration time_to_end = std::chrono::seconds(10);

/// How the processes of this host reach the coordinator.
struct Contact {
  std::string address;  ///< of the coordinator
  std::string key;
  std::string key_file;  ///< that the user has given; empty: a random key, for this host alone
  std::string master;    ///< HOST:PORT, for torch.distributed

  bool between_hosts() const { return !key_file.empty(); }
  std::string host() const { return address.substr(0, address.rfind(':')); }
};

/// What the coordinator's process inherits. Owns the listener, borrows the rest.
struct Inherited {
  Contact contact;
  int listener = -1;
  int events = -1;
  int gate = -1;  ///< where it lets the programs start, if another host coordinates
  ProgramEnds* ends = nullptr;
};

/// Another host coordinates.
bool follows_another(const ProgramsRequest& request) {
  return request.part && !request.part->coordinates;
}

/// The ranks that this host starts.
ProgramRange range_of(const ProgramsRequest& request) {
  return request.part ? ProgramRange{.first = request.part->first, .count = request.part->count}
                      : ProgramRange{.first = 0, .count = request.workers};
}

ProgramHost::Options host_options(const ProgramsRequest& request, const Contact& contact,
                                  ProgramEnds& ends, EventPipe& events) {
  const auto emit = [&events](const Recorder::Json& event) { events.emit(event); };
  return {.programs = request.workers,
          .here = range_of(request),
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
          .key = contact.key,
          .address = contact.host() + ":0",
          .place = request.part ? request.part->place : OwnPlace(),
          .encrypted = contact.between_hosts()};
}

/// The body of the coordinator's process.
int coordinate_programs(const ProgramsRequest& request, const Inherited& inherited) {
  take_end_requests();
  EventPipe events(inherited.events);
  const Contact& contact = inherited.contact;
  RealWorld world(listen_over("shm", {.token = contact.key,
                                      .descriptor = inherited.listener,
                                      .encrypted = contact.between_hosts(),
                                      .control_only = true}));
  int status = exit_status::success;
  try {
    ProgramHost(world, host_options(request, contact, *inherited.ends, events)).run();
  } catch (const std::exception& error) {
    status = status_of(error);
  }
  world.transport().close(world.now() + std::chrono::seconds(2));
  return status;
}

/// The body of the process that stands for a coordinator on another host.
int follow_from_here(const ProgramsRequest& request, const Inherited& inherited) {
  take_end_requests();
  EventPipe events(inherited.events);
  return follow_coordinator(request, inherited.contact.key, *inherited.ends, events, [&] {
    const std::string go(request.part->count, '+');
    if (::write(inherited.gate, go.data(), go.size()) != static_cast<ssize_t>(go.size())) {
      throw_system_error("start the programs of this host");
    }
  });
}

/// Waits until the coordinator has welcomed this host. Returns false if its link has ended before.
bool passes(int gate) {
  char go = 0;
  ssize_t bytes = -1;
  while (bytes < 0) {
    pollfd waiting{gate, POLLIN, 0};
    ::poll(&waiting, 1, -1);
    bytes = ::read(gate, &go, 1);  // another program may have been faster
  }
  return bytes == 1;
}

/// Becomes the program. Returns only where it cannot be started.
int become_program(const ProgramsRequest& request, const ProgramLaunch& launch,
                   const std::string& master) {
  for (const auto& [name, value] : variables_of(launch)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  for (const auto& [name, value] : torch_variables_of(launch, range_of(request).count, master)) {
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

/// `gate`: what the program waits for before it starts; empty: nothing.
Child program_process(const ProgramsRequest& request, const ProgramLaunch& launch,
                      const std::string& master, std::optional<int> gate) {
  return {.name = fmt::format("worker {}", launch.rank), .body = [&request, launch, master, gate] {
            const bool starts = !gate || passes(*gate);
            return starts ? become_program(request, launch, master) : exit_status::success;
          }};
}

/// HOST:PORT of the store of torch.distributed, which all hosts must know: the port after that of
/// the coordinator.
std::string next_port(const std::string& address) {
  const auto colon = address.rfind(':') + 1;
  return address.substr(0, colon) + std::to_string(std::stoul(address.substr(colon)) + 1);
}

Child host_process(const ProgramsRequest& request, Inherited inherited, ListeningSocket listener,
                   Descriptor events, Descriptor gate) {
  const bool follows = follows_another(request);
  inherited.listener = listener.socket.get();
  inherited.gate = gate.get();
  inherited.events = events.get();
  Child child{.name = follows ? "link to the coordinator" : "coordinator",
              .body = [&request, inherited, follows] {
                return follows ? follow_from_here(request, inherited)
                               : coordinate_programs(request, inherited);
              }};
  child.alone.push_back(std::move(listener.socket));
  child.alone.push_back(std::move(events));
  child.alone.push_back(std::move(gate));
  return child;
}

/// How the processes reach the coordinator, and the socket at which it listens if it is here.
std::pair<Contact, ListeningSocket> contact_of(const ProgramsRequest& request) {
  if (!request.part) {
    ListeningSocket listener = listen_on_loopback();
    Contact contact{.address = listener.address,
                    .key = unguessable_token(),
                    .key_file = {},
                    .master = fmt::format("127.0.0.1:{}", port_for_another())};
    return {std::move(contact), std::move(listener)};
  }
  const HostPart& part = *request.part;
  if (!part.place.interface.empty()) {
    tcp::address_of_interface(part.place.interface);  // refuses one that this host lacks
  }
  Contact contact{.address = part.address,
                  .key = read_key(part.key_file, "--secret"),
                  .key_file = std::filesystem::absolute(part.key_file).string(),
                  .master = next_port(part.address)};
  return {std::move(contact), part.coordinates
                                  ? listen_at(part.address, tcp::Network::encrypted, "--listen")
                                  : ListeningSocket()};
}

/// Claims the folder that the user has named, and gives it up again, so that one that cannot be
/// used is refused before anything is started.
void check_run_folder(const ProgramsRequest& request) {
  if (!follows_another(request) && request.given.contains("run-dir")) {
    const RunClaim claim({.config = request.config, .named_run_dir = true});
  }
}

}  // namespace

int run_programs(const ProgramsRequest& request, const OpenView& open_view) {
  check_run_folder(request);
  auto [contact, listener] = contact_of(request);
  Pipe events = make_pipe();
  Pipe gate = make_pipe();
  ProgramEnds ends;
  std::vector<Child> children;
  children.push_back(host_process(request, {.contact = contact, .ends = &ends}, std::move(listener),
                                  std::move(events.write), std::move(gate.write)));
  const auto waits = follows_another(request) ? std::optional(gate.read.get()) : std::nullopt;
  const ProgramRange here = range_of(request);
  for (std::uint32_t local = 0; local < here.count; ++local) {
    ProgramLaunch launch{.coordinator = contact.address,
                         .key = contact.key,
                         .rank = here.first + local,
                         .size = request.workers,
                         .local_rank = local,
                         .options = request.given,
                         .key_file = contact.key_file,
                         .place = request.part ? request.part->place : OwnPlace()};
    children.push_back(program_process(request, launch, contact.master, waits));
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
