#include "job/roles/coordinate_here.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors.hpp"
#include "job/roles/processes.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate::cli {
namespace {

/// Bound before anything is started, so that an address in use is refused.
Listener listen_at(const std::string& address) {
  tcp::Endpoint endpoint = tcp::parse_address(address);
  const int family = endpoint.protocol().family();
  Listener listener{Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  const int socket = listener.socket.get();
  const int yes = 1;  // an address of a coordinator that has just ended is free
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      ::listen(socket, SOMAXCONN) != 0 || ::getsockname(socket, endpoint.data(), &size) != 0) {
    throw ConfigError(
        fmt::format("--listen: cannot listen at {}: {}", address, std::strerror(errno)));
  }
  endpoint.resize(size);
  listener.address = tcp::to_string(endpoint);
  return listener;
}

}  // namespace

int coordinate_here(const CoordinatorCommand& wanted) {
  if (uses_shared_model(wanted.job.config)) {
    throw ConfigError(fmt::format(
        "scheme {} needs memory that all workers share: start them together, by `syncopate train`",
        wanted.job.config.scheme));
  }
  if (wanted.job.config.virtual_time) {
    throw ConfigError(
        "virtual time passes within one process, where nobody can join by hand: start the job by "
        "`syncopate train`");
  }
  Listener listener = listen_at(wanted.address);
  const Hub hub{
      .address = listener.address, .token = wanted.token, .transport = wanted.job.config.transport};
  RunClaim claim(wanted.job);
  const TrainCommand& command = claim.command();
  const Job job(command.config, checkpoint_of(command));
  Pipe events = make_pipe();
  std::vector<Child> processes;
  processes.push_back(coordinator_process(job, std::move(listener), std::move(events.write),
                                          {.hub = hub,
                                           .gather_limit = command.gather_limit,
                                           .by_hand = true,
                                           .residents = servers_within(job)}));
  processes.push_back(evaluator_process(job, hub));
  return run_claimed(claim, {.children = std::move(processes), .events = std::move(events.read)});
}

}  // namespace syncopate::cli
